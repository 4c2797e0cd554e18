import { translation } from '../en/catalogue';

/** Actions on a message, and the branches of a chat. */
export const message = translation({
  'message.editQuestion': 'Nachricht bearbeiten',
  'message.editAnswer': 'Antwort bearbeiten',
  'message.editing': 'Text der Nachricht',
  'message.sendEdited': 'Senden',
  'message.keepEdited': 'Sichern',
  'message.cancel': 'Abbrechen',
  'message.editNote': 'Die vorige Fassung und ihre Antworten bleiben erhalten.',
  'message.more': 'Mehr zu dieser Nachricht',
  'message.answer': 'Antwort erzeugen',
  'message.copyText': 'Als Text kopieren',
  'message.fork': 'In neuem Chat verzweigen',
  'message.forkTitle': '{title} (Zweig)',
  'message.deleteTurn': 'Nachricht und Antwort löschen',
  'message.deleteBranch': 'Ab hier alles löschen',
  'message.deleted': 'Gelöscht. 30 Tage lang lässt es sich wiederherstellen.',
  'message.edited': 'Von Hand bearbeitet',
  'message.byModel': '{model} · {when}',
  'message.unread': 'Neue Antwort',
  'message.copyTable': 'Tabelle kopieren',
  'message.wrap': 'Zeilen umbrechen',
  'message.copy': 'Nachricht kopieren',
  'message.quote': 'Zitieren',

  'branch.questions': 'Fassungen',
  'branch.previousQuestion': 'Vorige Fassung',
  'branch.nextQuestion': 'Nächste Fassung',
});
