import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// No inline scripts or styles, no data: modules: the policy of the page forbids them. fragments: 'tree' builds elements one by one, so that
// no HTML is ever parsed from a string.
export default defineConfig({
  base: './',
  plugins: [svelte({ compilerOptions: { fragments: 'tree', discloseVersion: false } })],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: { input: ['index.html', 'travel.html'] },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:7117' } },
  test: { include: ['src/**/*.test.ts'] },
} as any);
