import { translation } from '../en/catalogue';

/** The preview of a page, a drawing or a diagram that a response wrote. */
export const preview = translation({
  'preview.open': 'Vorschau öffnen',
  'preview.kind.html': 'Seite',
  'preview.kind.svg': 'Zeichnung',
  'preview.kind.mermaid': 'Diagramm',
  'preview.versions': 'Versionen',
  'preview.version': '{number} von {count}',
  'preview.older': 'Ältere Version',
  'preview.newer': 'Neuere Version',
  'preview.stop': 'Vorschau stoppen',
  'preview.run': 'Erneut ausführen',
  'preview.reload': 'Neu laden',
  'preview.showCode': 'Code zeigen',
  'preview.hideCode': 'Vorschau zeigen',
  'preview.save': 'Sichern …',
  'preview.close': 'Vorschau schließen',
  'preview.resize': 'Breite der Vorschau',
  'preview.stopped': 'Die Vorschau wurde gestoppt.',
  'preview.tookFocus': 'Die Vorschau wurde gestoppt, weil sie die Tastatur an sich nahm, während anderswo gearbeitet wurde.',
  'preview.ended': 'Das Fenster wurde neu geladen, während eine Vorschau offen war. Chats und Entwürfe sind unversehrt.',
});
