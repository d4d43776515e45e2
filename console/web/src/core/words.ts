// How amounts are written. Times are microseconds, money is decimal text or 10⁻¹² USD.

export function length(us: number): string {
  const s = us / 1e6;
  if (s < 0.0995) return `${Math.round(us / 1000)} ms`;
  if (s < 59.95) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** A place on the time line. */
export function clock(us: number): string {
  const s = Math.max(0, us) / 1e6;
  const m = Math.floor(s / 60);
  if (m >= 60) return `${Math.floor(m / 60)}:${pad(m % 60)}:${pad(Math.floor(s % 60))}`;
  return `${m}:${pad(Math.floor(s % 60))}.${Math.floor((s * 10) % 10)}`;
}

const pad = (n: number) => String(n).padStart(2, '0');

export function dollars(usd: number): string {
  if (usd === 0) return '$0';
  return '$' + (usd >= 0.995 ? usd.toFixed(2) : usd >= 0.00995 ? usd.toFixed(3) : usd.toPrecision(2));
}

export const pico = (p: number) => dollars(p / 1e12);

export function many(n: number): string {
  return n < 10_000 ? String(n) : n < 1e6 ? `${(n / 1000).toFixed(n < 1e5 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
}

export function ago(iso: string, now: number, lang: string): string {
  const s = Math.round((Date.parse(iso) - now) / 1000);
  const f = new Intl.RelativeTimeFormat(lang, { numeric: 'auto', style: 'short' });
  const a = Math.abs(s);
  if (a < 60) return f.format(s, 'second');
  if (a < 3600) return f.format(Math.trunc(s / 60), 'minute');
  if (a < 86400) return f.format(Math.trunc(s / 3600), 'hour');
  return f.format(Math.trunc(s / 86400), 'day');
}

/** A run's id without what all ids have in common. */
export const short = (id: string) => (id.length > 20 ? id.slice(0, 8) + '…' + id.slice(-6) : id);
