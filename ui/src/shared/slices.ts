/** Work in slices: one in each frame, in the order in which they were requested, so that no task is long. */

const waiting = new Set<() => void>();
/** The frame that has had its slice. */
let taken = -1;

/** Runs a slice in a frame of its own; the returned function takes it back. */
export function nextSlice(run: () => void): () => void {
  // A request of its own, even of the same work.
  const slice = (): void => run();
  waiting.add(slice);
  requestAnimationFrame(next);
  return () => void waiting.delete(slice);
}

function next(time: number): void {
  const [slice] = waiting;
  if (!slice) return;
  if (time === taken) {
    requestAnimationFrame(next);
    return;
  }
  taken = time;
  waiting.delete(slice);
  slice();
}
