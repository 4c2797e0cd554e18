/** Builds `src/testing/contract` into one script, which a test runs in the app's page. */

import { defineConfig } from 'vite';

export default defineConfig({
  logLevel: 'warn',
  build: {
    target: 'safari17',
    minify: false,
    lib: { entry: 'src/testing/contract/page.ts', formats: ['iife'], name: 'contract', fileName: () => 'contract.js' },
  },
});
