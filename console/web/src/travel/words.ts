const en = {
  lang: 'en', title: 'Time travel', about: 'The real loop runs in this page and folds the run’s events: at any of them it shows the state and what the run owed.', loading: 'Loading the loop…', failed: 'That did not work:', back: 'Run',
  event: 'Event', before: 'Event before', next: 'Next event', owed: 'What the run owed', changed: 'What the event changed', state: 'State', nothing: 'Nothing: the run waits, or it is over.', same: 'Nothing.', started: 'Under way already.',
  whatIf: 'What if', whatIfAbout: 'Other limits, the same answers of the model: how far would it have come?', ask: 'Fold again', noChange: 'Nothing would have been different.', ends: 'It would have ended', open: 'It would have gone on beyond what was recorded.', closing: 'after one closing call', atRound: 'At round', saved: 'Saved', rounds: 'rounds', calls: 'model calls',
  limits: { rounds: 'Rounds', model_calls: 'Model calls', tool_calls: 'Tool calls', tokens: 'Tokens', stall: 'Stall after repeats' },
  commands: { record: 'a fact that the loop itself owes', authorize: 'validate and decide a call', check: 'check the evidence', compact: 'shorten the transcript', model: 'call the model', tool: 'run a tool', effect: 'ask whether it happened', child: 'run a child', abort: 'end what is under way', wake: 'ask again later' },
};

export const words: { en: typeof en; es: typeof en } = {
  en,
  es: {
    lang: 'es', title: 'Viaje en el tiempo', about: 'El bucle real corre en esta página y pliega los eventos de la ejecución: en cada uno muestra el estado y lo que debía.', loading: 'Cargando el bucle…', failed: 'No ha funcionado:', back: 'Ejecución',
    event: 'Evento', before: 'Evento anterior', next: 'Evento siguiente', owed: 'Lo que debía la ejecución', changed: 'Lo que cambió el evento', state: 'Estado', nothing: 'Nada: espera, o ha terminado.', same: 'Nada.', started: 'Ya en curso.',
    whatIf: '¿Y si…?', whatIfAbout: 'Otros límites, las mismas respuestas del modelo: ¿hasta dónde habría llegado?', ask: 'Plegar otra vez', noChange: 'Nada habría sido distinto.', ends: 'Habría terminado', open: 'Habría seguido más allá de lo grabado.', closing: 'tras una llamada de cierre', atRound: 'En la ronda', saved: 'Ahorro', rounds: 'rondas', calls: 'llamadas al modelo',
    limits: { rounds: 'Rondas', model_calls: 'Llamadas al modelo', tool_calls: 'Llamadas a herramientas', tokens: 'Tokens', stall: 'Estancada tras repetir' },
    commands: { record: 'un hecho que debe el propio bucle', authorize: 'validar y decidir una llamada', check: 'comprobar las pruebas', compact: 'acortar la transcripción', model: 'llamar al modelo', tool: 'usar una herramienta', effect: 'preguntar si ocurrió', child: 'llevar otra ejecución', abort: 'acabar lo que está en curso', wake: 'preguntar más tarde' },
  },
};
