import { describe, expect, it } from 'vitest';

import { textPart } from '../host/fake';
import { all, click, host, open, pass, the, useWindow } from '../testing/window';

useWindow();

async function openCode(fence: string): Promise<void> {
  const chat = host.addChat('Code', Date.now());
  host.addTurn(chat, 'Write code', { parts: [textPart(fence)] });
  await open('chat', chat.summary.id);
}

describe('a code block', () => {
  it('is saved to a file by the dialog of the system, which alone knows the place', async () => {
    await openCode('```rust\nfn main() {}\n```');
    await click('save-code');
    expect(host.savedCode).toEqual([{ code: 'fn main() {}', language: 'rust' }]);
    expect(the('save-code').textContent).toBe('Saved as code.rust');
    await pass(3000);
    expect(the('save-code').textContent).toBe('Save');
    host.closesDialogs = true;
    await click('save-code');
    expect(the('save-code').textContent).toBe('Save');
    expect(all('toast')).toEqual([]);
  });

  it('says why it could not be saved', async () => {
    await openCode('```\nx\n```');
    host.saveCode = async () => {
      throw { code: 'storage', message: 'the file could not be written: the disk is full' };
    };
    await click('save-code');
    expect(the('toast').textContent).toContain('the disk is full');
    expect(the('save-code').textContent).toBe('Save');
  });

  it('offers to draw diagrams alone', async () => {
    await openCode('```mermaid\ngraph TD\n  A --> B\n```\n\n```rust\nfn main() {}\n```');
    expect(all('draw-diagram')).toHaveLength(1);
    expect(all('save-code')).toHaveLength(2);
  });
});
