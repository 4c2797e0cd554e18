import { build, type Plugin } from 'vite';

/** The address of the frame's page, which `src/markdown/diagramFrame.ts` opens. */
const FILE = 'diagram.html';

/**
 * The rules of the page, beside those that every page of the app has. The shell adds the script's hash to them: a frame
 * in a sandbox has no origin, so no script of the app's own, and no module, could be loaded into it.
 */
const RULES = "connect-src 'none'; img-src data:; font-src 'none'; frame-src 'none'; worker-src 'none'; form-action 'none'; base-uri 'none'";

/** Adds the page of the frame in which diagrams are drawn: one file with mermaid inside. */
export function diagramHtml(): Plugin {
  let page: Promise<string> | undefined;
  return {
    name: 'diagram-html',
    configureServer(server) {
      server.middlewares.use(`/${FILE}`, (_, response, next) => {
        page ??= html();
        page.then((text) => response.setHeader('Content-Type', 'text/html').end(text), next);
      });
    },
    async generateBundle() {
      this.emitFile({ type: 'asset', fileName: FILE, source: await html() });
    },
  };
}

async function html(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: 'warn',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      target: 'safari17',
      write: false,
      // A whole library in one file of the program itself.
      chunkSizeWarningLimit: 10_000,
      lib: { entry: 'src/markdown/diagramPage.ts', formats: ['iife'], name: 'diagram' },
    },
  });
  const outputs = [built].flat().flatMap((result) => ('output' in result ? result.output : []));
  const [script, ...others] = outputs.flatMap((output) => (output.type === 'chunk' ? [output.code] : []));
  if (script === undefined || others.length > 0) throw new Error(`the script of ${FILE} is not one file`);
  return `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${RULES}"><title>Diagram</title><body><script>${inline(script)}</script></body>`;
}

/** A script without the letters that would end it, or begin another, inside HTML. They stand in texts and patterns alone. */
function inline(script: string): string {
  return script.replace(/<(?=!--|\/?script)/gi, '\\x3C');
}
