/** The loop, compiled: package console/wasm says what its exports do. */
export interface Loop {
  load(events: string): number;
  at(i: number): any;
  whatIf(change: unknown): any;
}

/** Fetches and starts it. It gets a clock and random bytes, as every Go program needs, and nothing else of the world. */
export async function start(url: string): Promise<Loop> {
  let memory: WebAssembly.Memory;
  const view = () => new DataView(memory.buffer);
  const unknown = () => 52; // ENOSYS
  const world: Record<string, (...a: any[]) => number> = {
    clock_time_get: (_id: number, _precision: bigint, to: number) => (view().setBigUint64(to, BigInt(Date.now()) * 1_000_000n, true), 0),
    random_get: (to: number, n: number) => (crypto.getRandomValues(new Uint8Array(memory.buffer, to, n)), 0),
    args_sizes_get: (n: number, size: number) => (view().setUint32(n, 0, true), view().setUint32(size, 0, true), 0),
    environ_sizes_get: (n: number, size: number) => (view().setUint32(n, 0, true), view().setUint32(size, 0, true), 0),
    args_get: () => 0,
    environ_get: () => 0,
    sched_yield: () => 0,
    fd_prestat_get: () => 8, // EBADF: there are no files
    fd_fdstat_get: () => 8,
    fd_write: (_fd: number, iovs: number, count: number, written: number) => {
      let n = 0;
      let text = '';
      for (let i = 0; i < count; i++) {
        const size = view().getUint32(iovs + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(memory.buffer, view().getUint32(iovs + 8 * i, true), size));
        n += size;
      }
      console.warn(text);
      view().setUint32(written, n, true);
      return 0;
    },
    proc_exit: (code: number) => {
      throw new Error(`the loop ended with ${code}`);
    },
  };
  const imports = { wasi_snapshot_preview1: new Proxy(world, { get: (w, name) => w[name as string] ?? unknown }) };
  const { instance } = await WebAssembly.instantiateStreaming(fetch(url), imports as any);
  const go = instance.exports as any;
  memory = go.memory;
  go._initialize();
  const put = (text: string): number => {
    const bytes = new TextEncoder().encode(text);
    const to = go.alloc(bytes.length);
    new Uint8Array(memory.buffer, to, bytes.length).set(bytes);
    return bytes.length;
  };
  const take = (n: number) => JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, go.result(), n)));
  return { load: (events) => go.load(put(events)), at: (i) => take(go.at(i)), whatIf: (change) => take(go.what_if(put(JSON.stringify(change)))) };
}
