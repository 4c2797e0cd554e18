import { describe, expect, it } from 'vitest';

import { shareOf } from '../format/quantities';
import { carriesFiles, dropped, moved, nameOf, pasted, placeAt } from './droppedFiles';

/** The data of a paste or a drop. */
function data(names: readonly string[], texts: Record<string, string> = {}): Pick<DataTransfer, 'files' | 'getData'> {
  const files = names.map((name) => new File(['x'], name));
  const list = Object.assign(Object.create(FileList.prototype), {
    item: (index: number) => files[index] ?? null,
  }) as FileList;
  Object.defineProperty(list, 'length', { value: files.length });
  files.forEach((file, index) => Object.defineProperty(list, index, { value: file }));
  return { files: list, getData: (type) => texts[type] ?? '' };
}

const names = (files: readonly File[]): string[] => files.map((file) => file.name);

describe('what is pasted', () => {
  it.each([
    ['a screenshot', ['image.png'], ''],
    ['an image of a page beside its address', ['image.png'], 'https://example.org/boat.png'],
    ['a file of a file manager beside its name', ['boat.jpg'], 'boat.jpg'],
    [
      'files of a file manager beside their paths',
      ['my boat.jpg', 'b.png'],
      'file:///home/me/my%20boat.jpg\r\n/home/me/b.png',
    ],
  ])('is the image: %s', (_, files, text) => {
    expect(names(pasted(data(files, { 'text/plain': text })).files)).toEqual(files);
  });

  it.each([
    ['words alone', [], 'some words'],
    ['an address alone', [], 'https://example.org/boat.png'],
    ['cells of a table beside an image of them', ['image.png'], 'one\ttwo'],
    ['words of a broken path', ['image.png'], '100 % sure'],
  ])('is the text: %s', (_, files, text) => {
    expect(pasted(data(files, { 'text/plain': text })).files).toEqual([]);
  });
});

describe('what is dropped', () => {
  it('is the bitmap, not the address beside it', () => {
    const brought = dropped(data(['boat.png'], { 'text/uri-list': 'https://example.org/boat.png' }));
    expect([names(brought.files), brought.address]).toEqual([['boat.png'], false]);
  });

  it('is nothing but an address, of which nothing is fetched', () => {
    expect(dropped(data([], { 'text/uri-list': 'https://example.org/boat.png' })).address).toBe(true);
    expect(dropped(data([], { 'text/plain': 'https://example.org' })).address).toBe(true);
    expect(dropped(data([], { 'text/plain': 'words' }))).toEqual({ files: [], address: false });
  });

  it('is looked for only among what could be a file', () => {
    expect(['Files', 'text/uri-list', 'image/png', 'text/plain'].map((type) => carriesFiles([type]))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });
});

it('a name that the web view made up is none', () => {
  expect(['image.png', 'Image.JPG', 'harbour.png', 'image-2.png'].map((name) => nameOf({ name }))).toEqual([
    '',
    '',
    'harbour.png',
    'image-2.png',
  ]);
});

it('an entry goes to another place', () => {
  expect(
    [
      moved('abcd'.split(''), 0, 2),
      moved('abcd'.split(''), 3, 0),
      moved('abcd'.split(''), 1, 1),
      moved(['a'], 4, 0),
    ].map((list) => list.join('')),
  ).toEqual(['bcad', 'dabc', 'abcd', 'a']);
});

it('a point lies before, between or after images in rows', () => {
  const box = (left: number, top: number): DOMRect => new DOMRect(left, top, 60, 60);
  const boxes = [box(0, 0), box(70, 0), box(0, 70)];
  expect([
    placeAt(boxes, 10, 30),
    placeAt(boxes, 50, 30),
    placeAt(boxes, 200, 30),
    placeAt(boxes, 50, 90),
    placeAt(boxes, 5, 500),
    placeAt(boxes, 5, -9),
  ]).toEqual([0, 1, 2, 3, 3, 0]);
});

it('a share of a context is at least one percent, and crowded above half', () => {
  expect([shareOf(1, 131_072), shareOf(2048, 4096), shareOf(2100, 4096)]).toEqual([
    { percent: 1, crowded: false },
    { percent: 50, crowded: false },
    { percent: 51, crowded: true },
  ]);
});
