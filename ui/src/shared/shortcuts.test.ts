import { expect, it } from 'vitest';

import { commandOf, fieldCommand, shortcutLabel, type Keys } from './shortcuts';

const none: Keys = { key: '', metaKey: false, ctrlKey: false, shiftKey: false, altKey: false };

it('takes Command on a Mac and Control elsewhere', () => {
  expect(commandOf({ ...none, key: 'n', metaKey: true }, true)).toBe('new-chat');
  expect(commandOf({ ...none, key: 'n', ctrlKey: true }, true)).toBeNull();
  expect(commandOf({ ...none, key: 'n', ctrlKey: true }, false)).toBe('new-chat');
});

it('tells shortcuts with Shift from those without', () => {
  expect(commandOf({ ...none, key: 'R', ctrlKey: true, shiftKey: true }, false)).toBe('regenerate');
  expect(commandOf({ ...none, key: 'r', ctrlKey: true }, false)).toBeNull();
  expect(commandOf({ ...none, key: 'n', ctrlKey: true, altKey: true }, false)).toBeNull();
});

it('takes plus wherever the keyboard has it', () => {
  expect(commandOf({ ...none, key: '+', ctrlKey: true, shiftKey: true }, false)).toBe('zoom-in');
  expect(commandOf({ ...none, key: '+', ctrlKey: true }, false)).toBe('zoom-in');
  expect(commandOf({ ...none, key: '=', ctrlKey: true }, false)).toBe('zoom-in');
  expect(commandOf({ ...none, key: '-', ctrlKey: true }, false)).toBe('zoom-out');
  expect(shortcutLabel('zoom-in', true)).toBe('⌘+');
  expect(shortcutLabel('import', true)).toBe('');
});

it('writes them as the platform does', () => {
  expect(shortcutLabel('search', true)).toBe('⌘⇧F');
  expect(shortcutLabel('search', false)).toBe('Ctrl+Shift+F');
});

it('takes letters back in fields alone, where the web view does not', () => {
  const pressed = (target: Element, keys: KeyboardEventInit): KeyboardEvent => {
    const event = new KeyboardEvent('keydown', { ctrlKey: true, ...keys });
    target.dispatchEvent(event);
    return event;
  };
  const [field, elsewhere] = [document.createElement('textarea'), document.createElement('p')];
  expect(fieldCommand(pressed(field, { key: 'z' }), false)).toBe('undo');
  expect(fieldCommand(pressed(field, { key: 'Z', shiftKey: true }), false)).toBe('redo');
  expect(fieldCommand(pressed(field, { key: 'y' }), false)).toBe('redo');
  expect(fieldCommand(pressed(field, { key: 'z', altKey: true }), false)).toBeNull();
  expect(fieldCommand(pressed(field, { key: 'z' }), true)).toBeNull();
  expect(fieldCommand(pressed(elsewhere, { key: 'z' }), false)).toBeNull();
});
