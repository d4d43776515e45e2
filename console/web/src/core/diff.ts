export interface DiffLine {
  op: '=' | '-' | '+';
  text: string;
}

/** The difference of two texts by lines: a longest common sequence. Beyond most lines it is everything old, everything new. */
export function lines(a: string, b: string, most = 400): DiffLine[] {
  const x = a.split('\n');
  const y = b.split('\n');
  if (x.length > most || y.length > most) return [...x.map((text) => ({ op: '-' as const, text })), ...y.map((text) => ({ op: '+' as const, text }))];
  const w = y.length + 1;
  const table = new Uint16Array((x.length + 1) * w);
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--) table[i * w + j] = x[i] === y[j] ? table[(i + 1) * w + j + 1]! + 1 : Math.max(table[(i + 1) * w + j]!, table[i * w + j + 1]!);
  const out: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push({ op: '=', text: x[i]! });
      i++;
      j++;
    } else if (i < x.length && (j >= y.length || table[(i + 1) * w + j]! >= table[i * w + j + 1]!)) out.push({ op: '-', text: x[i++]! });
    else out.push({ op: '+', text: y[j++]! });
  }
  return out;
}
