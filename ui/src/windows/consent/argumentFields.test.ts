import { describe, expect, it } from 'vitest';

import type { JsonValue } from '../../bindings/serde_json/JsonValue';
import { fieldsOf, fieldValue, firstValue, missingOf, unsetOf, type FieldKind } from './argumentFields';

const schema = (properties: JsonValue, required: string[] = []): JsonValue => ({
  type: 'object',
  properties,
  required,
});

function kindOf(property: JsonValue, value: JsonValue): FieldKind | undefined {
  return fieldsOf(schema({ it: property }), { it: value })[0]?.kind;
}

describe('the field of an argument', () => {
  it.each<[JsonValue, JsonValue, FieldKind]>([
    [{ type: 'string' }, 'tea', 'text'],
    [{ type: 'string' }, 'one\ntwo', 'long'],
    [{ type: 'string' }, 'word '.repeat(20), 'long'],
    [{ type: 'number' }, 1.5, 'number'],
    [{ type: 'integer' }, 3, 'integer'],
    [{ type: 'boolean' }, false, 'boolean'],
    [{ type: ['string', 'null'] }, 'tea', 'text'],
    [{ anyOf: [{ type: 'integer' }, { type: 'null' }] }, 3, 'integer'],
    [{ enum: ['a', 'b'] }, 'b', 'choice'],
    [{ enum: [1, 2] }, 2, 'choice'],
    [{ type: 'array' }, [1], 'json'],
    [{ type: 'object' }, {}, 'json'],
  ])('of %j with the value %j is %s', (property, value, kind) => {
    expect(kindOf(property, value)).toBe(kind);
  });

  it.each<[JsonValue, JsonValue]>([
    [{ type: 'string' }, 5],
    [{ type: 'integer' }, '5'],
    [{ type: 'integer' }, 1.5],
    [{ type: ['string', 'integer'] }, '5'],
    [{ type: 'string' }, null],
    [{ enum: ['a', 'b'] }, 'c'],
    [{ enum: ['a', 'a\u200b'] }, 'a'],
    [{ enum: ['x'.repeat(50)] }, 'x'.repeat(50)],
    [true, 'tea'],
    [{ type: 'toString' }, 'tea'],
  ])('of %j is JSON if a plain field could be mistaken for another value than %j', (property, value) => {
    expect(kindOf(property, value)).toBe('json');
  });

  it('is there for each argument, also for those that the schema does not know', () => {
    const values: JsonValue = JSON.parse('{"__proto__": 1, "constructor": 2, "b": 3, "a": 4}');
    const fields = fieldsOf(schema({ a: { type: 'integer' }, c: {} }), Object(values));
    expect(fields.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      'a integer',
      '__proto__ json',
      'constructor json',
      'b json',
    ]);
  });

  it('is there whatever a server calls a schema', () => {
    const objects: JsonValue[] = [{ properties: [] }, { properties: null, required: 'a' }, { required: [1] }];
    const strange: JsonValue[] = [null, true, 'x', [], ...objects];
    for (const parameters of strange)
      expect(fieldsOf(parameters, { a: 1 }).map(({ kind }) => kind)).toEqual(['json']);
  });
});

describe('arguments that are not set', () => {
  const properties = { a: { type: 'string' }, b: { type: 'array' }, c: { enum: [7] }, d: { default: 'x' } };
  const parameters = schema(properties, ['b', 'z']);

  it('are those of the schema, the required ones first', () => {
    expect(unsetOf(parameters, { a: '' })).toEqual(['b', 'z', 'c', 'd']);
    expect(missingOf(parameters, { a: '', b: [] })).toEqual(['z']);
    expect(missingOf(schema({}, ['constructor']), {})).toEqual(['constructor']);
  });

  it('begin with a value of their type', () => {
    expect(['a', 'b', 'c', 'd', 'z'].map((name) => firstValue(parameters, name))).toEqual(['', [], 7, 'x', null]);
  });
});

it('takes no text for a number that says none, or one that would be rounded', () => {
  expect(['5', ' -1.5e3 ', '0'].map((text) => fieldValue('number', text))).toEqual([5, -1500, 0]);
  for (const text of ['', '05', '0x1', 'NaN', 'Infinity', '1e999', '1,5'])
    expect(fieldValue('number', text)).toBeUndefined();
  for (const text of ['1.5', '1e400']) expect(fieldValue('integer', text)).toBeUndefined();
  // As it is written: the page would round it.
  expect(fieldValue('integer', '9007199254740993')).toBe(9007199254740993n);
});
