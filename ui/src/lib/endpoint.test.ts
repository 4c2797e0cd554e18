import { expect, it } from 'vitest';

import { staysHere } from './endpoint';

it.each([
  ['http://localhost:1/v1', true],
  ['http://models.localhost/v1', true],
  ['http://127.0.0.2/v1', true],
  ['http://[::1]:80/v1', true],
  ['http://localhost.example.org/v1', false],
  ['http://127.0.0.1.example.org/v1', false],
  ['http://192.168.1.2/v1', false],
  ['https://example.org/v1', false],
  ['nonsense', false],
])('%s stays on this computer: %s', (address, stays) => {
  expect(staysHere(address)).toBe(stays);
});
