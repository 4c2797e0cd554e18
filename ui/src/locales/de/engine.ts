import { translation } from '../en/catalogue';

/** Loaded models, and notices about memory, heat and power. */
export const engine = translation({
  'engine.loaded': 'Geladene Modelle',
  'engine.loadedNone': 'Kein Modell ist geladen. Die nächste Nachricht lädt eines.',
  'engine.loadedNote': '{size} · {context} Kontext · {device}',
  'engine.unloadNow': 'Auswerfen',
  'engine.unloadNowOf': '{name} auswerfen',
  'engine.unloaded': '{name} wurde ausgeworfen.',
  'engine.memory': 'Belegter Speicher: {size}',
  'engine.unload': 'Unbenutzte Modelle entladen',
  'engine.unloadAbout': 'Gibt Speicher frei, wenn ein Modell so lange nicht verwendet wurde.',
  'engine.unload.never': 'Nie',
  'engine.minutes': { one: '{count} Minute', other: '{count} Minuten' },
  'engine.hours': { one: '{count} Stunde', other: '{count} Stunden' },
  'engine.threads': 'Prozessor-Threads',
  'engine.threadsAbout': 'Wie viele Kerne ohne GPU rechnen. Automatisch nutzt einen Thread pro Kern.',
  'engine.threadsAuto': 'Automatisch',
  'engine.threadCount': { one: '{count} Thread', other: '{count} Threads' },
  'engine.processor': 'CPU ({instructions}) · {threads} · Aktivierungen in {bits} Bit',
  'engine.prefix': 'Prompt-Cache',
  'engine.prefixAbout': 'Behält verarbeitete Prompts, damit die nächste Nachricht schneller beginnt. MB je Modell; 0 schaltet es aus.',
  'engine.prefixAuto': 'Automatisch',

  'power.modelReleased': 'Der Speicher war knapp, deshalb hat Ponder {size} freigegeben. Die nächste Nachricht lädt das Modell wieder.',
  'power.cacheReleased': 'Der Speicher war knapp, deshalb hat Ponder {size} freigegeben. Die nächste Nachricht verarbeitet ihren Chat noch einmal.',
  'power.slowed.low_power': 'Diese Antwort ist langsamer, weil der Computer Strom spart.',
  'power.slowed.heat': 'Diese Antwort ist langsamer, weil der Computer heiß ist.',
  'power.keepAwake': 'Computer bei der Arbeit wach halten',
});
