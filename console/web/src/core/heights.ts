/** Heights of rows with quick sums (a Fenwick tree): where row i begins and which row is at y cost the logarithm of their number. */
export class Heights {
  private tree: number[] = [0];
  private h: number[] = [];

  constructor(private guess: number) {}

  get size(): number {
    return this.h.length;
  }

  /** Makes room for at least n rows; new ones have the guessed height. It never forgets: a viewer who seeks back comes again. */
  grow(n: number): void {
    for (let i = this.h.length + 1; i <= n; i++) {
      this.h.push(this.guess);
      this.tree.push(this.sum(i - 1) - this.sum(i - (i & -i)) + this.guess);
    }
  }

  set(i: number, height: number): boolean {
    const d = height - this.h[i]!;
    if (Math.abs(d) < 0.5) return false;
    this.h[i] = height;
    for (let k = i + 1; k < this.tree.length; k += k & -k) this.tree[k]! += d;
    return true;
  }

  /** Height of the first n rows. */
  sum(n: number): number {
    let s = 0;
    for (let k = Math.min(n, this.h.length); k > 0; k -= k & -k) s += this.tree[k]!;
    return s;
  }

  /** The row at y: the first one whose end is below y. */
  at(y: number): number {
    let pos = 0;
    let step = 1;
    while (step * 2 < this.tree.length) step *= 2;
    for (; step > 0; step >>= 1) {
      if (pos + step < this.tree.length && this.tree[pos + step]! <= y) {
        pos += step;
        y -= this.tree[pos]!;
      }
    }
    return Math.min(pos, Math.max(this.h.length - 1, 0));
  }
}
