import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'

// One script and one style sheet, no inline code: the server's Content-Security-Policy admits only files of its own.
export default defineConfig({
  plugins: [svelte()],
  base: './',
  build: {
    outDir: '../static',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8765', '/frames': 'http://127.0.0.1:8765', '/questions': 'http://127.0.0.1:8765' } },
  test: { include: ['tests/**/*.test.ts'], css: true },
})
