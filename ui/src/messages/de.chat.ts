import { translation } from '.';

/** Texts about links, models that are gone, and what can be done with a message. */
export const chat = translation({
  'link.asks': 'Diesen Link öffnen?',
  'link.says': 'Im Link steht:',
  'link.leads': 'Er führt zu:',
  'link.opens': '{host} öffnen',
  'link.keep': 'Hierbleiben',
  'link.odd': 'Diese Adresse öffnet Ponder nicht: {address}',

  'gone.text': 'Das Modell dieses Chats, {name}, ist nicht mehr auf diesem Computer.',
  'gone.mark': '{name} ist nicht mehr da',
  'gone.getAgain': 'Wieder laden',
  'gone.useAnother': 'Anderes verwenden',

  'message.copy': 'Frage kopieren',
  'message.quote': 'Zitieren',
});
