import { Player, timeline, type Block, type Mark } from '../core/player';
import { NotARecording, read, type Faults, type Recording } from '../core/read';
import { clock, length } from '../core/words';
import { sheet } from './style';
import { words, type Words } from './words';

const now = () => Math.round(performance.now() * 1000);
const keys: Record<string, string> = { ' ': 'space', ArrowLeft: 'left', ArrowRight: 'right', Enter: 'enter', Escape: 'escape', Backspace: 'backspace' };
const most = 100; // blocks in the document at a time

function el<K extends keyof HTMLElementTagNameMap>(name: K, cls = '', text = ''): HTMLElementTagNameMap[K] {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  if (text) e.textContent = text;
  return e;
}

/**
 * <ronda-replay src="run.ronda"> plays a recording at its own pace. Attributes: src (also changed later), speed, max-wait (seconds that a wait
 * may last; "none" cuts nothing), autoplay, lang (en, es; else that of the page). The file is fetched with CORS rules and parsed in the page;
 * nothing in it is ever taken for HTML. Events: ready (detail: the header), ended.
 */
export class RondaReplay extends HTMLElement {
  static observedAttributes = ['src', 'lang'];

  private root = this.attachShadow({ mode: 'open' });
  private player: Player | null = null;
  private rec: Recording | null = null;
  private marks: Mark[] = [];
  private frame = 0;
  private fetching: AbortController | null = null;
  private drawn = new Map<number, { block: Block; expanded: boolean; el: HTMLElement }>();
  private open = new Set<Block>();
  private w: Words = words.en;
  private list = el('div', 'list');
  private line = el('input');
  private canvas = el('canvas');
  private play = el('button', 'play');
  private time = el('span', 'time');
  private speed = el('span', 'speed');
  private note = el('p', 'note');
  private head = el('header');
  private controls = el('div', 'controls');
  private ended = false;
  private resized: ResizeObserver | null = null;

  constructor() {
    super();
    this.root.adoptedStyleSheets = [sheet()];
    this.line.type = 'range';
    this.line.min = '0';
    this.line.addEventListener('input', () => this.move((p) => ((p.playing = false), p.seek(Number(this.line.value)))));
    this.play.addEventListener('click', () => this.press('space'));
    const track = el('div', 'track');
    track.append(this.canvas, this.line);
    this.controls.append(this.play, track, this.time, this.button('slower', '−', ','), this.speed, this.button('faster', '+', '.'));
    this.note.setAttribute('role', 'status');
    this.list.tabIndex = 0;
    this.list.setAttribute('role', 'region');
    this.root.append(this.head, this.list, this.note, this.controls);
    this.addEventListener('keydown', (e) => this.key(e));
  }

  connectedCallback(): void {
    this.speak();
    this.resized = new ResizeObserver(() => this.drawLine());
    this.resized.observe(this.canvas);
    if (!this.player && this.getAttribute('src')) void this.load();
    else this.run();
  }

  disconnectedCallback(): void {
    cancelAnimationFrame(this.frame);
    this.fetching?.abort();
    this.resized?.disconnect();
  }

  attributeChangedCallback(name: string, was: string | null, is: string | null): void {
    if (was === is || !this.isConnected) return;
    if (name === 'src') void this.load();
    else this.speak();
  }

  private button(name: 'slower' | 'faster', sign: string, key: string): HTMLButtonElement {
    const b = el('button', '', sign);
    b.dataset.word = name;
    b.addEventListener('click', () => this.press(key));
    return b;
  }

  private speak(): void {
    this.w = (this.lang || document.documentElement.lang || '').startsWith('es') ? words.es : words.en;
    this.list.setAttribute('aria-label', this.rec ? `${this.w.transcript}: ${this.rec.header.title ?? this.rec.header.run}` : this.w.transcript);
    this.line.setAttribute('aria-label', this.w.position);
    for (const b of this.root.querySelectorAll<HTMLElement>('[data-word]')) b.setAttribute('aria-label', this.w[b.dataset.word as 'slower']);
    this.drawn.clear();
    this.list.replaceChildren();
    this.show();
  }

  private async load(): Promise<void> {
    this.fetching?.abort();
    const ask = (this.fetching = new AbortController());
    this.player = this.rec = null;
    this.say(this.w.loading);
    try {
      const res = await fetch(this.getAttribute('src') ?? '', { signal: ask.signal, credentials: 'same-origin' });
      if (!res.ok) throw new Error(`${res.status} ${res.statusText}`);
      const rec = await read(new Uint8Array(await res.arrayBuffer()), { check: true, pause: () => new Promise((done) => setTimeout(done)) });
      if (!ask.signal.aborted) this.begin(rec);
    } catch (err) {
      if (!ask.signal.aborted) this.say(`${err instanceof NotARecording ? this.w.bad : this.w.failed} ${(err as Error).message}`);
    }
  }

  private begin(rec: Recording): void {
    this.rec = rec;
    this.say(this.faults(rec.faults));
    if (rec.faults.newer) return;
    const wait = this.getAttribute('max-wait');
    const options = { speed: Number(this.getAttribute('speed')) || 1, max_wait: wait === 'none' ? -1 : wait ? Number(wait) * 1e6 : 0 };
    this.player = new Player(timeline(rec), options, now());
    this.marks = this.player.marks();
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    if (!this.hasAttribute('autoplay') || still) this.player.playing = false;
    this.line.max = String(Math.max(1, this.player.total()));
    this.line.step = String(Math.max(1, Math.round(this.player.total() / 1000)));
    this.heading(rec);
    this.drawn.clear();
    this.list.replaceChildren();
    this.list.setAttribute('aria-label', `${this.w.transcript}: ${rec.header.title ?? rec.header.run}`);
    this.dispatchEvent(new CustomEvent('ready', { detail: rec.header }));
    this.show();
    this.run();
  }

  private heading(rec: Recording): void {
    const model: string = rec.header.models?.[0] ?? '';
    this.head.replaceChildren(el('strong', '', rec.header.title ?? rec.header.run), el('span', 'agent', rec.header.agent ?? ''));
    if (model.startsWith('scripted')) this.head.append(el('span', 'tag', this.w.scripted));
    this.head.append(el('span', 'model', model.replace(/^scripted\//, '')));
  }

  private faults(f: Faults): string {
    if (f.newer) return this.w.newer;
    return [f.cutOff && this.w.cutOff, f.broken !== null && this.w.broken, f.missing.length > 0 && this.w.missing].filter(Boolean).join(' ');
  }

  private say(text: string): void {
    this.note.textContent = text;
    this.note.hidden = !text;
  }

  private press(key: string): boolean {
    if (!this.player) return false;
    const known = this.player.key(now(), key);
    if (known) this.show();
    this.run();
    return known;
  }

  private move(how: (p: Player) => void): void {
    if (!this.player) return;
    how(this.player);
    this.show();
    this.run();
  }

  private key(e: KeyboardEvent): void {
    if (!this.player || e.ctrlKey || e.metaKey || e.altKey) return;
    const from = e.composedPath()[0] as HTMLElement;
    const typing = this.player.view().typing;
    if (!typing && from.tagName === 'BUTTON' && (e.key === ' ' || e.key === 'Enter')) return;
    if (from === this.line && e.key.startsWith('Arrow')) return;
    const key = keys[e.key] ?? (e.key.length === 1 ? e.key : '');
    if (key && this.press(key)) e.preventDefault();
  }

  private run(): void {
    cancelAnimationFrame(this.frame);
    if (!this.player?.playing || !this.isConnected) return;
    this.frame = requestAnimationFrame(() => {
      this.player!.tick(now());
      this.show();
      this.run();
    });
  }

  /** Brings the page to what the player shows. Only blocks that changed are made anew, and only the last ones are there. */
  private show(): void {
    const p = this.player;
    this.controls.hidden = !p;
    if (!p) return;
    const v = p.view();
    const blocks = p.blocks();
    const from = Math.max(0, blocks.length - most);
    for (const [i, d] of this.drawn) {
      if (i >= from && i < blocks.length) continue;
      d.el.remove();
      this.drawn.delete(i);
    }
    for (let i = from; i < blocks.length; i++) {
      const b = blocks[i]!;
      const was = this.drawn.get(i);
      if (was?.block === b && was.expanded === !!v.expanded) continue;
      const e = this.block(b);
      if (was) was.el.replaceWith(e);
      else this.list.append(e);
      this.drawn.set(i, { block: b, expanded: !!v.expanded, el: e });
    }
    this.list.scrollTop = this.list.scrollHeight;
    this.play.textContent = v.playing ? '❚❚' : '▶';
    this.play.setAttribute('aria-label', v.playing ? this.w.pause : this.w.play);
    this.time.textContent = `${clock(v.pos)} / ${clock(v.total)}`;
    this.speed.textContent = `${v.speed}×`;
    this.line.value = String(v.pos);
    this.line.setAttribute('aria-valuetext', `${clock(v.pos)} / ${clock(v.total)}`);
    const state = v.help ? this.w.keys : v.typing ? `/${v.query ?? ''}▏` : v.missed ? `${v.query}: ${this.w.none}` : v.wait && v.playing ? `${this.w.waits[v.wait.cause as 'model'] ?? v.wait.cause}: ${length(v.wait.cut)} ${this.w.cut}` : this.faults(this.rec!.faults);
    if (this.note.textContent !== state) this.say(state);
    this.drawLine();
    const over = v.shown === v.items;
    if (over && !this.ended) this.dispatchEvent(new CustomEvent('ended'));
    this.ended = over;
  }

  private block(b: Block): HTMLElement {
    const e = el('div', `block ${b.kind}${b.failed ? ' failed' : ''}${b.run ? ' child' : ''}`);
    if (b.kind === 'wait') {
      e.textContent = `${this.w.waits[b.cause as 'model'] ?? b.cause}: ${length(b.cut ?? 0)} ${this.w.cut}`;
      return e;
    }
    const label = el('span', 'label', this.w.kinds[b.kind as 'text'] ?? '');
    if (b.tool) label.append(' ', el('b', '', b.tool));
    e.append(label);
    const text = b.kind === 'call' ? (b.args ?? '') : (b.text ?? '');
    const body = el('div', 'text', text.length > 4000 ? text.slice(0, 4000) + '…' : text);
    if (b.kind === 'thought') {
      const folded = b.folded && !this.open.has(b);
      const fold = el('button', 'fold', folded ? '▸' : '▾');
      fold.setAttribute('aria-label', this.w.unfold);
      fold.setAttribute('aria-expanded', String(!folded));
      fold.addEventListener('click', () => {
        if (this.open.has(b)) this.open.delete(b);
        else this.open.add(b);
        e.replaceWith((this.drawn.get([...this.drawn].find(([, d]) => d.block === b)?.[0] ?? -1)!.el = this.block(b)));
      });
      label.append(fold);
      body.classList.toggle('folded', folded);
    }
    e.append(body);
    return e;
  }

  private drawLine(): void {
    const c = this.canvas.getContext('2d');
    const width = this.canvas.clientWidth;
    if (!c || !width || !this.player) return;
    const dpr = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * dpr)) {
      this.canvas.width = Math.round(width * dpr);
      this.canvas.height = 28 * dpr;
    }
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    c.clearRect(0, 0, width, 28);
    const total = this.player.total() || 1;
    const x = (at: number) => Math.round((at / total) * (width - 3));
    const ink = getComputedStyle(this.time).color;
    const bright = getComputedStyle(this.play).backgroundColor;
    c.fillStyle = ink;
    c.globalAlpha = 0.3;
    c.fillRect(0, 13, width, 3);
    c.globalAlpha = 1;
    c.fillStyle = bright;
    c.fillRect(0, 13, x(this.player.view().pos), 3);
    let last = -1;
    for (const m of this.marks) {
      const at = x(m.at);
      if (m.kind === 'wait') {
        c.fillStyle = ink;
        c.globalAlpha = 0.5;
        for (let i = x(Math.max(0, m.at - 2e6)); i < at; i += 4) c.fillRect(i, 6, 1, 17);
        c.globalAlpha = 1;
        continue;
      }
      if (at === last && m.kind !== 'stop' && m.kind !== 'approval') continue;
      last = at;
      c.fillStyle = m.kind === 'tool' ? bright : ink;
      const [y, h] = { round: [9, 10], tool: [11, 7], approval: [4, 20], stop: [4, 20] }[m.kind];
      c.fillRect(at, y!, m.kind === 'round' ? 1 : 2, h!);
    }
  }
}

if (!customElements.get('ronda-replay')) customElements.define('ronda-replay', RondaReplay);
