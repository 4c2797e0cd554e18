import { translation } from '../en/catalogue';

/** The page about the engine, and notices about memory, heat and power. */
export const engine = translation({
  'engine.loaded': 'Modelle im Speicher',
  'engine.loadedNone': 'Kein Modell ist im Speicher. Die erste Frage lädt eines.',
  'engine.loadedNote': '{size} · {context} Kontext · {device}',
  'engine.unloadNow': 'Jetzt entladen',
  'engine.unloadNowOf': 'Jetzt entladen: {name}',
  'engine.unloaded': '{name} ist nicht mehr im Speicher. Die nächste Antwort lädt es wieder.',
  'engine.memory': 'Belegter Speicher: {size}',
  'engine.unload': 'Unbenutzte Modelle entladen',
  'engine.unloadAbout': 'Ein Modell, das so lange nichts gefragt wurde, verlässt den Speicher; seine nächste Antwort lädt es wieder.',
  'engine.unload.never': 'Nie',
  'engine.minutes': { one: '{count} Minute', other: '{count} Minuten' },
  'engine.hours': { one: '{count} Stunde', other: '{count} Stunden' },
  'engine.prefix': 'Speicher für gelesene Chats',
  'engine.prefixAbout': 'Was behalten wird, muss für die nächste Frage nicht noch einmal gelesen werden. Je Modell, in Megabytes; 0 behält nichts.',
  'engine.prefixAuto': 'automatisch',

  'power.modelReleased': 'Der Speicher wurde knapp, deshalb hat Ponder {size} freigegeben. Die nächste Frage lädt das Modell wieder.',
  'power.cacheReleased': 'Der Speicher wurde knapp, deshalb hat Ponder {size} freigegeben. Die nächste Frage liest ihren Chat noch einmal.',
  'power.slowed.low_power': 'Der Computer spart Strom, deshalb kommt diese Antwort langsamer.',
  'power.slowed.heat': 'Der Computer ist heiß und langsamer geworden, deshalb kommt diese Antwort langsamer.',
  'power.keepAwake': 'Computer wach halten',
  'power.keepAwakeText': 'Solange eine Antwort geschrieben oder ein Modell geladen wird, schläft der Computer nicht von selbst ein. Zuklappen oder „Ruhezustand“ wählen wirkt weiterhin.',
});
