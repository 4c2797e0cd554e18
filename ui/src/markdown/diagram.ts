/**
 * Diagrams of mermaid, drawn on request. A large library draws text that a model wrote, so it draws in a frame that
 * reaches nothing of the app, and the result is sanitized and shown as an image: there nothing runs, nothing is loaded
 * and no style leaves it.
 */

import type { MermaidConfig } from 'mermaid';

import { t } from '../locales';
import { drawInFrame } from './diagramFrame';
import { sanitizeDrawing } from './sanitize';

/** More characters are not drawn: the library may work on the window's own thread, also in its frame. */
export const LONGEST_DIAGRAM = 10_000;
/** More lines between the boxes are not drawn. */
const MOST_EDGES = 150;

/** An image of a diagram in pixels of the page, or a sentence that says why there is none. */
export type Drawing =
  { kind: 'drawn'; url: string; width: number; height: number; title: string } | { kind: 'failed'; reason: string };

/** True if a code block with this label is a diagram. */
export function isDiagram(label: string): boolean {
  return label.toLowerCase() === 'mermaid';
}

/** Draws a diagram in the colors that the window has now. */
export async function drawDiagram(source: string): Promise<Drawing> {
  if (source.length > LONGEST_DIAGRAM) return { kind: 'failed', reason: t('diagram.tooLarge') };
  try {
    return imageOf(await drawInFrame(source, config())) ?? { kind: 'failed', reason: t('diagram.failed') };
  } catch (error) {
    return { kind: 'failed', reason: reasonOf(error, source) };
  }
}

function config(): MermaidConfig {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    startOnLoad: false,
    securityLevel: 'strict',
    suppressErrorRendering: true,
    maxTextSize: LONGEST_DIAGRAM,
    maxEdges: MOST_EDGES,
    htmlLabels: false,
    journey: { textPlacement: 'tspan' },
    // An image has the fonts of the system alone, so it has to be measured with them.
    fontFamily: 'system-ui, sans-serif',
    theme: 'base',
    themeVariables: {
      darkMode: matchMedia('(prefers-color-scheme: dark)').matches,
      fontFamily: 'system-ui, sans-serif',
      fontSize: '14px',
      background: colour('--sunk'),
      primaryColor: colour('--accent-soft'),
      primaryTextColor: colour('--text'),
      primaryBorderColor: colour('--accent'),
      secondaryColor: colour('--hover'),
      tertiaryColor: colour('--side'),
      lineColor: colour('--soft'),
      textColor: colour('--text'),
    },
    // Settings that a diagram may not override.
    secure: [
      'altFontFamily', 'dompurifyConfig', 'fontFamily', 'htmlLabels', 'legacyMathML', 'forceLegacyMathML', 'logLevel',
      'maxEdges', 'maxTextSize', 'secure', 'securityLevel', 'startOnLoad', 'suppressErrorRendering', 'themeCSS',
      'arrowMarkerAbsolute',
    ],
  };
}

/** The library's drawing as an image with a size of its own; `null` if it is none. */
function imageOf(svg: string): Drawing | null {
  const drawing = sanitizeDrawing(svg);
  if (!drawing) return null;
  const [, , width = 0, height = 0] = (drawing.getAttribute('viewBox') ?? '').split(/[\s,]+/).map(Number);
  if (!(width > 0 && height > 0 && width < 50_000 && height < 50_000)) return null;
  drawing.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  drawing.setAttribute('width', String(width));
  drawing.setAttribute('height', String(height));
  const title = drawing.querySelector('title')?.textContent?.trim() ?? '';
  const url = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(drawing))}`;
  return { kind: 'drawn', url, width, height, title };
}

function reasonOf(error: unknown, source: string): string {
  const message = error instanceof Error ? error.message : String(error);
  const line = /\b(?:error|token|character)\b[^]*?\bline:? ?(\d+)/i.exec(message)?.[1];
  // An end that comes too early is in the line after the last one.
  if (line) return t('diagram.notUnderstood', { line: Math.min(Number(line), source.trimEnd().split('\n').length) });
  if (/edge limit|text size/i.test(message)) return t('diagram.tooLarge');
  return t(/no diagram type/i.test(message) ? 'diagram.unknown' : 'diagram.failed');
}
