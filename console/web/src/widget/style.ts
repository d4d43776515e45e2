const css = `
:host { display: flex; flex-direction: column; height: 26rem; min-width: 0; border: 1px solid light-dark(#d8d5cb, #333b45); border-radius: 10px; overflow: hidden; color-scheme: light dark;
  background: light-dark(#fff, #1b2026); color: light-dark(#1c1f24, #e7e9ec); font: 14px/1.5 system-ui, -apple-system, 'Segoe UI', sans-serif; --muted: light-dark(#59606b, #a2aab5); --accent: light-dark(#0b5d53, #5fcdb9); }
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
header { display: flex; flex-wrap: wrap; gap: 0 .6rem; padding: .5rem .8rem; border-bottom: 1px solid light-dark(#eeece5, #2a313a); align-items: center; min-height: 2.3rem; }
.agent, .model { color: var(--muted); font-size: .9em; overflow-wrap: anywhere; }
.tag { border: 1px solid; border-radius: 4px; padding: 0 .35em; font-size: .75rem; font-weight: 600; color: light-dark(#67409b, #caabff); }
.list { flex: 1; overflow: auto; min-height: 0; }
.block { padding: .35rem .8rem; border-left: 4px solid transparent; overflow-wrap: anywhere; }
.child { margin-left: 1.2rem; }
.label { color: var(--muted); font-size: .8em; } .label b { color: light-dark(#1c1f24, #e7e9ec); font: 600 1.05em ui-monospace, 'DejaVu Sans Mono', monospace; }
.text { white-space: pre-wrap; }
.call .text, .result .text { font: .85em/1.5 ui-monospace, 'DejaVu Sans Mono', monospace; color: var(--muted); display: -webkit-box; -webkit-line-clamp: 6; -webkit-box-orient: vertical; overflow: hidden; }
.user { border-left-color: var(--accent); background: color-mix(in srgb, var(--accent) 6%, transparent); }
.call { border-left-color: light-dark(#1b58a8, #8cbcff); } .result { border-left-color: light-dark(#a9c0df, #44597a); }
.failed { border-left-color: light-dark(#a3231c, #ff9d94); } .note.block { color: light-dark(#7d4b00, #f2b84b); } .stop { font-weight: 600; border-left-color: light-dark(#17653a, #74d6a0); }
.thought .text { font-style: italic; color: var(--muted); } .folded { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.wait { text-align: center; font-size: .85em; border: 0; background: repeating-linear-gradient(-45deg, transparent 0 6px, color-mix(in srgb, var(--muted) 20%, transparent) 6px 8px); }
p.note { margin: 0; padding: .25rem .8rem; font-size: .85em; color: var(--muted); border-top: 1px solid light-dark(#eeece5, #2a313a); }
.controls { display: flex; align-items: center; gap: .4rem; padding: .4rem .6rem; border-top: 1px solid light-dark(#eeece5, #2a313a); flex-wrap: wrap; }
button { font: inherit; min-width: 1.9rem; min-height: 1.9rem; border: 1px solid light-dark(#85837b, #6c7683); border-radius: 6px; background: none; color: inherit; cursor: pointer; padding: 0 .4rem; }
.play { background: var(--accent); border-color: var(--accent); color: light-dark(#fff, #0c1513); }
.fold { border: 0; min-height: 1.5rem; min-width: 1.5rem; padding: 0; color: var(--muted); }
.track { position: relative; flex: 1 1 6rem; height: 28px; } canvas { width: 100%; height: 28px; display: block; } input { position: absolute; inset: 0; width: 100%; height: 28px; margin: 0; opacity: 0; cursor: pointer; }
.track:has(:focus-visible), :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; border-radius: 4px; }
.time, .speed { color: var(--muted); font: .82em ui-monospace, 'DejaVu Sans Mono', monospace; white-space: nowrap; }
`;

let made: CSSStyleSheet | null = null;

/** One sheet for every player of the page, constructed: a policy without inline styles allows it. */
export function sheet(): CSSStyleSheet {
  if (!made) {
    made = new CSSStyleSheet();
    made.replaceSync(css);
  }
  return made;
}
