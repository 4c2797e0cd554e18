import { describe, expect, it } from 'vitest';

import { Toasts } from './toasts.svelte';

const BROKEN = { code: 'storage', message: 'the disk broke' };

describe('an error that comes again', () => {
  it('is one toast', () => {
    const toasts = new Toasts();
    toasts.report(BROKEN);
    toasts.report(BROKEN);
    expect(toasts.on(null).map(({ title }) => title)).toEqual(['Couldn’t read or save data']);
  });

  it('is shown on the surface that covers its first toast', () => {
    const toasts = new Toasts();
    toasts.report(BROKEN);
    const uncover = toasts.cover('sheet');
    toasts.report(BROKEN);
    expect(toasts.on('sheet')).toHaveLength(1);
    uncover();
    expect(toasts.on(null)).toHaveLength(1);
  });
});
