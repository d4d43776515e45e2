import { get, onDenied, token, type Me } from '../core/api';
import { messages, type Lang, type Word } from './words';

/** A place in the console: its screen, the path after it and what stands behind the question mark. */
export interface Place {
  screen: string;
  path: string[];
  query: URLSearchParams;
}

function place(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  return { screen: parts[0] ?? 'runs', path: parts.slice(1), query: new URLSearchParams(query) };
}

const stored = (k: string) => {
  try {
    return localStorage.getItem(k) ?? '';
  } catch {
    return '';
  }
};

class App {
  lang = $state<Lang>((stored('ronda.lang') || navigator.language).startsWith('es') ? 'es' : 'en');
  theme = $state(stored('ronda.theme'));
  keys = $state(stored('ronda.keys') !== 'off'); // keys without Ctrl or Alt
  place = $state.raw<Place>(place());
  me = $state.raw<Me | null>(null);
  denied = $state(false);
  wrong = $state(false); // the token that was given is not accepted
  said = $state('');
  help = $state(false);
  waiting = $state(0);
  now = $state(Date.now());

  constructor() {
    addEventListener('hashchange', () => {
      this.place = place();
    });
    onDenied(() => {
      this.wrong = token.get() !== '';
      token.set('');
      this.denied = true;
      this.me = null;
    });
    setInterval(() => (this.now = Date.now()), 1000);
  }

  keep(name: 'lang' | 'theme' | 'keys', value: string): void {
    try {
      localStorage.setItem('ronda.' + name, value);
    } catch {
      // a browser that keeps nothing: it holds for this page
    }
  }

  async identify(): Promise<void> {
    try {
      this.me = await get<Me>('/v1/me');
      this.denied = this.wrong = false;
    } catch {
      // 401 shows the form; without a connection the screens say so
    }
  }

  /** Whether the caller may do what a role may. */
  may(role: Me['role']): boolean {
    const order = ['viewer', 'operator', 'approver', 'admin'];
    return order.indexOf(this.me?.role ?? '') >= order.indexOf(role);
  }

  /** Says something to those who do not see the screen: short, and never streamed text. */
  say(text: string): void {
    this.said = text;
  }
}

export const app = new App();

/** A text of the interface in the chosen language; {0}, {1} … take the arguments. */
export function t(word: Word, ...args: (string | number)[]): string {
  return messages[app.lang][word].replace(/\{(\d)\}/g, (_, i) => String(args[Number(i)] ?? ''));
}

/** A word that comes from the API (a stop, a status): in the chosen language where it is known. */
export function word(prefix: string, w: string): string {
  const key = `${prefix}.${w}` as Word;
  return key in messages.en ? t(key) : w;
}

export const href = (...parts: string[]) => '#/' + parts.map(encodeURIComponent).join('/');

/** Whether a key may be taken as a command: not while somebody types, and only if keys are switched on. */
export function command(e: KeyboardEvent): boolean {
  if (!app.keys || e.ctrlKey || e.altKey || e.metaKey || e.defaultPrevented) return false;
  const el = e.target as HTMLElement;
  return !el.closest?.('input:not([type=range]), textarea, select, [contenteditable], dialog');
}
