import { translation } from '.';

/** The texts about the computer's memory, heat and power. */
export const power = translation({
  'power.modelReleased': 'Der Speicher wurde knapp, deshalb hat Ponder {size} freigegeben. Die nächste Frage lädt das Modell wieder.',
  'power.cacheReleased': 'Der Speicher wurde knapp, deshalb hat Ponder {size} freigegeben. Die nächste Frage liest ihren Chat noch einmal.',
  'power.slowed.low_power': 'Der Computer spart Strom, deshalb kommt diese Antwort langsamer.',
  'power.slowed.heat': 'Der Computer ist heiß und langsamer geworden, deshalb kommt diese Antwort langsamer.',
  'power.keepAwake': 'Computer wach halten',
  'power.keepAwakeText': 'Solange eine Antwort geschrieben oder ein Modell geladen wird, schläft der Computer nicht von selbst ein. Zuklappen oder „Ruhezustand“ wählen wirkt weiterhin.',
});
