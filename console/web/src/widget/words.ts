const en = {
  play: 'Play', pause: 'Pause', slower: 'Slower', faster: 'Faster', position: 'Position', transcript: 'Transcript', unfold: 'Thought', loading: 'Loading…',
  failed: 'The recording could not be loaded:', bad: 'This is no recording:', newer: 'A newer version of ronda wrote this recording.', cutOff: 'The recording was cut off.',
  broken: 'Its hash chain is broken: lines were changed.', missing: 'Some of its artifacts are missing.', scripted: 'scripted', cut: 'not played', none: 'not found',
  keys: 'Space play, pause · ← → event · [ ] round · , . slower, faster · 0–9 seek · / search, n N next, before · e thoughts · ? these keys',
  kinds: { user: 'said', thought: 'thought', text: 'text', call: 'calls', result: 'result', note: '', stop: 'stopped' },
  waits: { model: 'the model', tool: 'a tool', human: 'a person', rate_limit: 'a rate limit', back_off: 'back-off', queue: 'nobody drove the run' },
};

export type Words = typeof en;

export const words: { en: Words; es: Words } = {
  en,
  es: {
    play: 'Reproducir', pause: 'Pausa', slower: 'Más lento', faster: 'Más rápido', position: 'Posición', transcript: 'Transcripción', unfold: 'Pensamiento', loading: 'Cargando…',
    failed: 'No se pudo cargar la grabación:', bad: 'Esto no es una grabación:', newer: 'La escribió una versión más nueva de ronda.', cutOff: 'La grabación está cortada.',
    broken: 'Su cadena está rota: se cambiaron líneas.', missing: 'Le faltan artefactos.', scripted: 'con guion', cut: 'sin reproducir', none: 'no está',
    keys: 'Espacio reproducir, pausa · ← → evento · [ ] ronda · , . más lento, más rápido · 0–9 ir a · / buscar, n N siguiente, anterior · e pensamientos · ? estas teclas',
    kinds: { user: 'dijo', thought: 'pensó', text: 'texto', call: 'llama', result: 'resultado', note: '', stop: 'terminada' },
    waits: { model: 'el modelo', tool: 'una herramienta', human: 'una persona', rate_limit: 'un límite de frecuencia', back_off: 'reintento', queue: 'nadie la llevaba' },
  },
};
