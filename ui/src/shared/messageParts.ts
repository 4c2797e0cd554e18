/** The parts of a message. */

import type { Content } from '../bindings/Content';
import type { Part } from '../bindings/Part';

/**
 * The parts with one more piece: neighboring texts of one kind are one part, all else is a part of its own. The parts
 * given are not changed.
 */
export function appendContent(parts: readonly Part[], content: Content, at: number): Part[] {
  const last = parts.at(-1);
  if ((content.kind === 'text' || content.kind === 'thinking') && last?.kind === content.kind) {
    return [...parts.slice(0, -1), { ...last, text: last.text + content.text, ended_at: at }];
  }
  return [...parts, { ...content, started_at: at, ended_at: at }];
}

/** The text of the parts, reasoning and calls left out. */
export function textOf(parts: readonly Content[]): string {
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
}

/** An image or a file. */
export type AttachmentContent = Extract<Content, { kind: 'image' | 'file' }>;

/** An image. */
export type ImageContent = Extract<Content, { kind: 'image' }>;

/** The images among the parts. */
export function imagesOf(parts: readonly Content[]): ImageContent[] {
  return parts.filter((part): part is Part & ImageContent => part.kind === 'image');
}

/** The images and files among the parts. */
export function attachmentsOf(parts: readonly Content[]): AttachmentContent[] {
  return parts.filter((part): part is Part & AttachmentContent => part.kind === 'image' || part.kind === 'file');
}

/** The readable result of a tool: texts as they are, data as JSON. */
export function resultText(parts: readonly Content[]): string {
  return parts.map((part) => (part.kind === 'data' ? JSON.stringify(part.data, null, 2) : textOf([part]))).join('');
}

/** A message of text; no parts without any. */
export function words(text: string): Content[] {
  return text === '' ? [] : [{ kind: 'text', text }];
}
