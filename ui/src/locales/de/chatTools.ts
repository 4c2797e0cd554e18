import { translation } from '../en/catalogue';

/** The tools of a chat: the panel that chooses them, and the chip that counts them. */
export const chatTools = translation({
  'chatTools.title': 'Werkzeuge',
  'chatTools.count': { one: '{count} Werkzeug', other: '{count} Werkzeuge' },
  'chatTools.chip': 'Werkzeuge für diesen Chat: {tools}',
  'chatTools.sum': '{tools} an, etwa {tokens}',
  'chatTools.none': 'Kein Werkzeug ist an. Jedes belegt etwas vom Kontext.',
  'chatTools.consent': 'Einschalten bietet ein Werkzeug dem Modell nur an. Aufrufe brauchen weiterhin Zustimmung.',
  'chatTools.modelCannot': 'Dieses Modell unterstützt keine Werkzeuge.',
  'chatTools.reading': 'Werkzeuge werden gelesen …',
  'chatTools.allOf': 'Alle Werkzeuge von {name}',
  'chatTools.noTools': 'Noch keine Werkzeuge bekannt',
  'chatTools.off': 'Aus',
  'chatTools.idle': 'Startet bei Bedarf',
  'chatTools.starting': 'Startet …',
  'chatTools.failed': 'Fehlgeschlagen: {reason}',
  'chatTools.needs_sign_in': 'Anmeldung nötig',
  'chatTools.toolOff': 'Aus. Es geht ins Internet.',
  'chatTools.turnOn': 'In den Einstellungen einschalten …',
  'chatTools.fix': 'Einstellungen öffnen …',
  'chatTools.add': 'Server in den Einstellungen hinzufügen …',
  'chatTools.onlyOwn': 'Nur Ponders eigene Werkzeuge sind verfügbar. Server bringen mehr.',
  'chatTools.asks': 'Fragt jedes Mal',
  'chatTools.denied': 'Läuft nie',
  'chatTools.gone': 'Nicht mehr verfügbar',
});
