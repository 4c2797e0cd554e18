/** Loaded models, and notices about memory, heat and power. */
export const engine = {
  'engine.loaded': 'Loaded models',
  'engine.loadedNone': 'No model is loaded. Your next message loads one.',
  'engine.loadedNote': '{size} · {context} context · {device}',
  'engine.unloadNow': 'Eject',
  'engine.unloadNowOf': 'Eject {name}',
  'engine.unloaded': 'Ejected {name}.',
  'engine.memory': 'Memory used: {size}',
  'engine.unload': 'Unload idle models',
  'engine.unloadAbout': 'Frees memory when a model hasn’t been used for this long.',
  'engine.unload.never': 'Never',
  'engine.minutes': { one: '{count} minute', other: '{count} minutes' },
  'engine.hours': { one: '{count} hour', other: '{count} hours' },
  'engine.prefix': 'Prompt cache',
  'engine.prefixAbout': 'Keeps processed prompts so the next message starts sooner. MB per model. 0 turns it off.',
  'engine.prefixAuto': 'Automatic',

  'power.modelReleased': 'Memory was low, so Ponder freed {size}. Your next message loads the model again.',
  'power.cacheReleased': 'Memory was low, so Ponder freed {size}. Your next message processes its chat again.',
  'power.slowed.low_power': 'This response is slower because the computer is saving power.',
  'power.slowed.heat': 'This response is slower because the computer is hot.',
  'power.keepAwake': 'Keep computer awake while working',
} as const;
