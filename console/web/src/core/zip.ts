export interface Unzipped {
  lines: Uint8Array;
  artifacts: Map<string, string>; // by reference
}

/** Reads a .ronda file: a zip whose members lines/… hold the lines in pieces, in the order of its directory, beside artifacts/…. */
export async function unzip(data: Uint8Array): Promise<Unzipped> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let end = data.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0) throw new Error('the zip has no directory: it was cut off');
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const parts: Uint8Array[] = [];
  const artifacts = new Map<string, string>();
  for (let i = 0; i < count; i++) {
    if (view.getUint32(at, true) !== 0x02014b50) throw new Error('the directory of the zip makes no sense');
    const method = view.getUint16(at + 10, true);
    const size = view.getUint32(at + 20, true);
    const nameLength = view.getUint16(at + 28, true);
    const local = view.getUint32(at + 42, true);
    const name = new TextDecoder().decode(data.subarray(at + 46, at + 46 + nameLength));
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (!name.startsWith('lines/') && !name.startsWith('artifacts/')) continue;
    const from = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const body = data.subarray(from, from + size);
    const bytes = method === 0 ? body : await inflate(body);
    if (name.startsWith('lines/')) parts.push(bytes);
    else artifacts.set(name.slice('artifacts/'.length).replace('-', ':'), new TextDecoder().decode(bytes));
  }
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let n = 0;
  for (const p of parts) {
    out.set(p, n);
    n += p.length;
  }
  return { lines: out, artifacts };
}

async function inflate(body: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([body as BlobPart]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
