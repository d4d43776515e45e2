import { defineConfig } from 'vite';

// <ronda-replay> for other people's pages: one module, one name that stays.
export default defineConfig({
  publicDir: false,
  build: {
    outDir: '../dist',
    emptyOutDir: false,
    target: 'es2022',
    lib: { entry: 'src/widget/replay.ts', formats: ['es'], fileName: () => 'ronda-replay.js' },
  },
});
