// Bundles the extension (out/extension.js), or with --tests the unit tests (out/test/).
import { readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));
const tests = process.argv.includes('--tests');
const minify = process.argv.includes('--minify');

const common = { absWorkingDir: here, bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };

if (tests) {
  rmSync(`${here}out/test`, { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: readdirSync(`${here}test`).map((name) => `test/${name}`),
    format: 'esm',
    outdir: 'out/test',
    outExtension: { '.js': '.mjs' },
    sourcemap: 'inline',
  });
} else {
  await build({
    ...common,
    entryPoints: ['src/extension.ts'],
    format: 'cjs',
    outfile: 'out/extension.js',
    external: ['vscode'],
    minify,
    sourcemap: minify ? false : 'linked',
  });
}
