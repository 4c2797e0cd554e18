import { describe, expect, it } from 'vitest';

import { LONGEST, readableCard } from './modelCard';

describe('a card', () => {
  it('begins after its metadata', () => {
    expect(readableCard('---\nlicense: mit\ntags:\n- mlx\n---\n# Name\n\nText', 'https://huggingface.co/a/b')).toBe(
      '# Name\n\nText',
    );
    expect(readableCard('---\r\nlicense: mit\r\n---\r\nText', 'https://huggingface.co/a/b')).toBe('Text');
    expect(readableCard('# Name\n\n---\n\nText', 'https://huggingface.co/a/b')).toBe('# Name\n\n---\n\nText');
    expect(readableCard('', 'https://huggingface.co/a/b')).toBe('');
  });

  it('names its neighbours in full', () => {
    expect(readableCard('[next](./other.md) [up](NOTES.md)', 'https://huggingface.co/a/b')).toBe(
      '[next](https://huggingface.co/a/b/blob/main/other.md) [up](https://huggingface.co/a/b/blob/main/NOTES.md)',
    );
    expect(
      readableCard('[paper](https://x.org/y) [here](#part) [mail](mailto:a@b.c)', 'https://huggingface.co/a/b'),
    ).toBe('[paper](https://x.org/y) [here](#part) [mail](mailto:a@b.c)');
  });

  it('of many pages is cut and says so', () => {
    const long = readableCard('word word\n\n'.repeat(20_000), 'https://huggingface.co/a/b');
    expect(long.length).toBeLessThan(LONGEST + 100);
    expect(long.endsWith('[Read the rest on Hugging Face](https://huggingface.co/a/b)')).toBe(true);
  });
});
