/** Builds `src/host/contract.ts` into one script, which a test runs in the app's page. */

import { defineConfig } from 'vite';

export default defineConfig({
  logLevel: 'warn',
  build: {
    target: 'safari17',
    minify: false,
    lib: { entry: 'src/host/contractPage.ts', formats: ['iife'], name: 'contract', fileName: () => 'contract.js' },
  },
});
