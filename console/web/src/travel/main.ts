// Time travel: the real loop, folding the events of a run in the page. What it shows at an event is what a driver would have found there.
import { get } from '../core/api';
import { lines } from '../core/diff';
import { length, pico } from '../core/words';
import '../app.css';
import { start, type Loop } from './loop';
import { words } from './words';

let lang = '';
try {
  lang = localStorage.getItem('ronda.lang') ?? '';
  const theme = localStorage.getItem('ronda.theme');
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // a browser that keeps nothing: the system's choice holds
}
const w = (lang || navigator.language).startsWith('es') ? words.es : words.en;
document.documentElement.lang = w.lang;
document.title = `${w.title} · ronda`;

function el<K extends keyof HTMLElementTagNameMap>(name: K, cls = '', ...inside: (string | Node)[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  e.append(...inside);
  return e;
}

const run = decodeURIComponent(location.hash.slice(1));
const main = el('main');
const screen = el('div', 'screen');
const note = el('p', 'empty', w.loading);
note.setAttribute('role', 'status');
const back = el('a', 'button', w.back);
back.href = `./#/runs/${encodeURIComponent(run)}`;
screen.append(el('div', 'head', el('h1', '', w.title), el('span', 'grow'), back), el('p', 'muted', w.about), note);
main.append(screen);
document.body.append(main);

async function everything(): Promise<any[]> {
  const out: any[] = [];
  for (let after = 0; ; ) {
    const page = await get<{ events: any[]; last: number }>(`/v1/runs/${encodeURIComponent(run)}/events?after=${after}&limit=2000`);
    out.push(...page.events);
    after = page.last;
    if (page.events.length < 2000) return out;
  }
}

function show(loop: Loop, events: any[], folded: number): void {
  let at = folded;
  const range = el('input', 'grow');
  Object.assign(range, { type: 'range', min: '1', max: String(events.length), value: String(at) });
  range.setAttribute('aria-label', w.event);
  const where = el('strong', 'mono');
  const before = el('button', '', '←');
  before.setAttribute('aria-label', w.before);
  const next = el('button', '', '→');
  next.setAttribute('aria-label', w.next);
  const owed = el('ul', 'claims');
  const pre = (label: string) => {
    const p = el('pre', 'card diff');
    p.tabIndex = 0;
    p.setAttribute('aria-label', label);
    p.setAttribute('role', 'region');
    return p;
  };
  const changed = pre(w.changed);
  const state = pre(w.state);
  const event = pre(w.event);
  const go = (to: number) => {
    at = Math.max(1, Math.min(events.length, to));
    range.value = String(at);
    const got = loop.at(at);
    where.textContent = `${at} / ${events.length}  ${events[at - 1].k}${got.status ? `  ·  ${got.status}${got.waiting?.length ? ` (${got.waiting.join(', ')})` : ''}` : ''}`;
    range.setAttribute('aria-valuetext', where.textContent);
    event.textContent = JSON.stringify(events[at - 1].b, null, 2).slice(0, 20_000);
    owed.replaceChildren(
      ...(got.owed ?? []).map((c: any) => {
        const li = el('li', '', el('strong', 'mono', c.ID), ` ${w.commands[c.Kind as 'model'] ?? c.Kind}`);
        if (c.Record) li.append(el('p', 'small mono', `${c.Record} ${JSON.stringify(c.Body).slice(0, 300)}`));
        if (c.Started) li.append(el('p', 'small muted', w.started));
        return li;
      }),
    );
    if (!got.owed?.length) owed.append(el('li', 'muted', got.error || w.nothing));
    const is = got.state ? JSON.stringify(got.state, null, 2) : got.error;
    state.textContent = is;
    const was = at > 1 ? loop.at(at - 1) : null;
    const diff = lines(was?.state ? JSON.stringify(was.state, null, 2) : '', is, 3000).filter((l) => l.op !== '=');
    changed.replaceChildren(...diff.slice(0, 400).map((l) => el('span', l.op === '+' ? 'dadd' : 'ddel', `${l.op} ${l.text}`)));
    if (!diff.length) changed.append(w.same);
  };
  range.addEventListener('input', () => go(Number(range.value)));
  before.addEventListener('click', () => go(at - 1));
  next.addEventListener('click', () => go(at + 1));
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || (e.target as HTMLElement).closest('input, select, textarea')) return;
    if (e.key === 'ArrowLeft') go(at - 1);
    else if (e.key === 'ArrowRight') go(at + 1);
    else return;
    e.preventDefault();
  });
  const column = (title: string, body: Node) => el('section', '', el('h2', '', title), body);
  note.remove();
  screen.append(
    el('div', 'controls', before, next, range, where),
    el('div', 'split', column(w.owed, owed), column(w.changed, changed)),
    el('div', 'split', column(w.event, event), column(w.state, state)),
    whatIf(loop),
  );
  go(at);
}

function whatIf(loop: Loop): HTMLElement {
  const fields = ['rounds', 'model_calls', 'tool_calls', 'tokens', 'stall'] as const;
  const form = el('form', 'card');
  const inputs = fields.map((f) => {
    const i = el('input');
    Object.assign(i, { type: 'number', min: '0', name: f });
    return i;
  });
  const out = el('p', '', w.whatIfAbout);
  out.setAttribute('role', 'status');
  form.append(el('h2', '', w.whatIf), el('div', 'filter', ...fields.map((f, i) => el('label', 'grow', w.limits[f], inputs[i]!))), el('button', 'primary', w.ask), out);
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const limits: Record<string, number> = {};
    let stall: number | undefined;
    fields.forEach((f, i) => {
      const v = inputs[i]!.value;
      if (v === '') return;
      if (f === 'stall') stall = Number(v);
      else limits[f] = Number(v);
    });
    const got = loop.whatIf({ limits, stall });
    const o = got.outcome;
    if (!o) out.textContent = got.error;
    else if (o.same) out.textContent = w.noChange;
    else {
      const end = o.stop ? `${w.ends}: ${o.stop}${o.limit ? ` (${o.limit})` : ''}${o.closing ? `, ${w.closing}` : ''}. ` : `${w.open} `;
      out.textContent = `${end}${w.atRound} ${o.round}, ${w.event.toLowerCase()} ${o.event}. ${w.saved}: ${o.rounds_saved} ${w.rounds}, ${o.model_calls_saved} ${w.calls}, ${o.tokens_saved} tokens, ${pico(o.cost_saved)}, ${length(o.time_saved)}.`;
    }
  });
  return form;
}

try {
  const [loop, events] = await Promise.all([start('./loop.wasm'), everything()]);
  show(loop, events, loop.load(events.map((e) => JSON.stringify(e)).join('\n')));
} catch (err) {
  note.className = 'problem';
  note.textContent = `${w.failed} ${(err as Error).message}`;
}
