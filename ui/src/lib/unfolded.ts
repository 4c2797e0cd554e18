/** What a person unfolded stays so while it is out of sight, where it is not drawn. */
export const unfolded = new Set<string>();
