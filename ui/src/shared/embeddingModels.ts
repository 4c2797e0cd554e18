/** The embedding models that documents are searched with, by the row that the Models window is asked for. */

/** A row holds letters and digits alone, because it is a part of the window's address. */
export const EMBEDDING_MODELS = {
  english: 'all-MiniLM-L6-v2',
  multilingual: 'multilingual-e5-small',
} as const;

export type EmbeddingRow = keyof typeof EMBEDDING_MODELS;

/** The words to search for at this row; `null` for any other. */
export function embeddingSearch(row: string | null): string | null {
  return row === 'english' || row === 'multilingual' ? EMBEDDING_MODELS[row] : null;
}
