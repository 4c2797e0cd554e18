import { translation } from '../en/catalogue';

/** The strengths of the recommended first models, by the note of the host. */
export const firstModels = translation({
  'firstModel.tiny': 'Sehr klein und sehr schnell, zum Ausprobieren.',
  'firstModel.small': 'Klein und schnell, für kurze Antworten und einfache Aufgaben.',
  'firstModel.direct': 'Ein fähiger Alleskönner, der sofort antwortet, ohne vorher nachzudenken.',
  'firstModel.all_rounder': 'Ein guter Alleskönner, der vor der Antwort nachdenken kann.',
  'firstModel.careful': 'Sorgfältige Antworten und gutes Deutsch, auf Wunsch mit Nachdenken.',
  'firstModel.reasoning': 'Schnell für seine Größe und stark im Schlussfolgern, mit Aufwandsstufen.',
  'firstModel.broad': 'Breites Wissen und schnell für seine Größe.',
  'firstModel.thorough': 'Gründlich, aber langsam, für schwere Aufgaben.',
  'firstModel.long_texts': 'Groß, aber schnell, und gut mit langen Texten.',
  'firstModel.strongest': 'Eines der stärksten offenen Modelle, für Macs mit viel Speicher.',
});
