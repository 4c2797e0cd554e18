/** The ids that the user expanded; they stay so while they are out of view and not drawn. */
export const expandedIds = new Set<string>();
