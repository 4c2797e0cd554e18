import { translation } from '../en/catalogue';

/**
 * The strengths of the recommended first models, as in the host’s list of them (`hub/src/huggingface/recommended.json`), which
 * the command line shows.
 */
export const firstModels = translation({
  'firstModel.mlx-community/Qwen3-0.6B-4bit': 'Sehr klein und sehr schnell, zum Ausprobieren.',
  'firstModel.mlx-community/Qwen3-1.7B-4bit': 'Klein und schnell, für kurze Antworten und einfache Aufgaben.',
  'firstModel.mlx-community/Qwen3-4B-Instruct-2507-4bit': 'Ein fähiger Alleskönner, der sofort antwortet, ohne vorher nachzudenken.',
  'firstModel.mlx-community/Qwen3-8B-4bit': 'Ein guter Alleskönner, der vor der Antwort nachdenken kann.',
  'firstModel.mlx-community/Qwen3-14B-4bit': 'Sorgfältige Antworten und gutes Deutsch, auf Wunsch mit Nachdenken.',
  'firstModel.mlx-community/gpt-oss-20b-MXFP4-Q8': 'Schnell für seine Größe und stark im Schlussfolgern, mit Aufwandsstufen.',
  'firstModel.mlx-community/Qwen3-30B-A3B-Instruct-2507-4bit': 'Breites Wissen und schnell für seine Größe.',
  'firstModel.mlx-community/Qwen3-32B-4bit': 'Gründlich, aber langsam, für schwere Aufgaben.',
  'firstModel.mlx-community/Qwen3-Next-80B-A3B-Instruct-4bit': 'Groß, aber schnell, und gut mit langen Texten.',
  'firstModel.mlx-community/gpt-oss-120b-MXFP4-Q8': 'Eines der stärksten offenen Modelle, für Macs mit viel Speicher.',
});
