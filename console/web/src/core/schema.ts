/**
 * Says at once what is plainly wrong with a value, while a person edits it. The server decides with the whole of JSON Schema; this knows type,
 * required, properties, additionalProperties, items, enum, bounds and lengths, and is silent about the rest.
 */
export function faults(schema: any, value: unknown, at = ''): string[] {
  if (!schema || typeof schema !== 'object') return [];
  const where = at || '·';
  const types: string[] = schema.type === undefined ? [] : [].concat(schema.type);
  if (types.length && !types.some((t) => is(t, value))) return [`${where}: ${types.join(' | ')}`];
  const out: string[] = [];
  if (schema.enum && !schema.enum.some((v: unknown) => JSON.stringify(v) === JSON.stringify(value))) out.push(`${where}: ${schema.enum.map((v: unknown) => JSON.stringify(v)).join(' | ')}`);
  if (typeof value === 'number') {
    if (schema.minimum !== undefined && value < schema.minimum) out.push(`${where}: ≥ ${schema.minimum}`);
    if (schema.maximum !== undefined && value > schema.maximum) out.push(`${where}: ≤ ${schema.maximum}`);
  }
  if (typeof value === 'string') {
    if (schema.minLength !== undefined && [...value].length < schema.minLength) out.push(`${where}: length ≥ ${schema.minLength}`);
    if (schema.maxLength !== undefined && [...value].length > schema.maxLength) out.push(`${where}: length ≤ ${schema.maxLength}`);
  }
  if (Array.isArray(value)) value.forEach((v, i) => out.push(...faults(schema.items, v, `${at}[${i}]`)));
  else if (value && typeof value === 'object') {
    const props = schema.properties ?? {};
    const o = value as Record<string, unknown>;
    for (const k of schema.required ?? []) if (!(k in o)) out.push(`${at ? at + '.' : ''}${k}: ∅`);
    for (const k in o) {
      if (props[k]) out.push(...faults(props[k], o[k], at ? `${at}.${k}` : k));
      else if (schema.additionalProperties === false) out.push(`${at ? at + '.' : ''}${k}: ?`);
    }
  }
  return out;
}

function is(type: string, v: unknown): boolean {
  switch (type) {
    case 'object': return v !== null && typeof v === 'object' && !Array.isArray(v);
    case 'array': return Array.isArray(v);
    case 'null': return v === null;
    case 'integer': return Number.isInteger(v);
    default: return typeof v === type;
  }
}
