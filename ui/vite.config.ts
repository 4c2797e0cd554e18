import { readFileSync } from 'node:fs';

import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

import { diagramHtml } from './diagramHtml.ts';

/** KaTeX names three formats of each font; every web view that runs Ponder reads the first, woff2. */
function onlyWoff2(): Plugin {
  return {
    name: 'only-woff2',
    enforce: 'pre',
    transform(code, id) {
      if (!id.includes('katex') || !id.includes('.css')) return null;
      return code.replace(/,\s*url\([^)]*\)\s*format\("(?:woff|truetype)"\)/g, '');
    },
  };
}

// Texts that stay out of the repository; `./dev test --full` names their file.
const collected = process.env.PONDER_PAYLOADS;
const payloads: string[] = collected ? JSON.parse(readFileSync(collected, 'utf8')) : [];
// The floors of all crates and of the window; pages may not read outside the folder of the window.
const floors = process.env.VITEST ? readFileSync('../tests/floors.toml', 'utf8') : '';

export default defineConfig({
  plugins: [onlyWoff2(), diagramHtml(), svelte()],
  clearScreen: false,
  server: { port: 5173, strictPort: true },
  build: {
    target: 'safari17',
    // Fonts stay files of their own, so that only those a page needs are read.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Files of the program itself; nobody waits for them over a network.
    chunkSizeWarningLimit: 1000,
  },
  // Tests mount components, which needs Svelte's browser build.
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
  // Their clocks are fake; the limit only ends a test that hangs, also on a busy machine.
  test: {
    provide: { floors, payloads, seed: Number(process.env.PONDER_SEED ?? 20261121) },
    environment: 'jsdom',
    css: { include: /app\.css/ },
    include: ['src/**/*.test.ts'],
    testTimeout: 30_000,
    maxWorkers: '100%',
  },
});
