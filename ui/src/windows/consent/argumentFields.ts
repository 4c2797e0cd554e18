/** The arguments of a call as fields, by the JSON schema of its tool. */

import { plainName } from '../../shared/displayNames';
import { meant, visible, visibleJson } from '../../shared/visible';
import { exactText, parseExact, type Exact, type ExactObject } from './exactJson';

export type FieldKind = 'text' | 'long' | 'number' | 'integer' | 'boolean' | 'choice' | 'json';

/** A field for one argument. */
export interface ArgumentField {
  readonly name: string;
  readonly kind: FieldKind;
  /** Its description in the schema; empty without one. */
  readonly description: string;
  readonly required: boolean;
  /** The values that the schema lists. */
  readonly choices: readonly Exact[];
}

/** A string of this length has a line of its own; a longer one has several. */
const LINE = 56;
/** A choice whose values are longer is text, because nothing of a value may be cut off. */
const LONGEST_CHOICE = 40;
/** A number as JSON writes it. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

export function isObject(value: Exact | undefined): value is ExactObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A property of an object itself: names come from strangers, and `constructor` is one of them. */
function own(object: ExactObject, name: string): Exact | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function propertiesOf(parameters: Exact): ExactObject {
  const properties = isObject(parameters) ? own(parameters, 'properties') : undefined;
  return isObject(properties) ? properties : {};
}

/** The names of arguments that a call must have. */
export function requiredOf(parameters: Exact): string[] {
  const required = isObject(parameters) ? own(parameters, 'required') : undefined;
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

/** The fields of all arguments that are set: those of the schema in its order, then the others. */
export function fieldsOf(parameters: Exact, values: ExactObject): ArgumentField[] {
  const known = Object.keys(propertiesOf(parameters)).filter((name) => Object.hasOwn(values, name));
  const others = Object.keys(values).filter((name) => !known.includes(name));
  return [...known, ...others].map((name) => fieldOf(parameters, name, own(values, name)));
}

/** The names of the schema's arguments that are not set, the required ones first. */
export function unsetOf(parameters: Exact, values: ExactObject): string[] {
  const names = [...new Set([...requiredOf(parameters), ...Object.keys(propertiesOf(parameters))])];
  return names.filter((name) => !Object.hasOwn(values, name));
}

/** The required arguments that are not set. */
export function missingOf(parameters: Exact, values: ExactObject): string[] {
  return requiredOf(parameters).filter((name) => !Object.hasOwn(values, name));
}

/** The field of an argument with this value. */
export function fieldOf(parameters: Exact, name: string, value: Exact | undefined): ArgumentField {
  const schema = own(propertiesOf(parameters), name);
  const described = isObject(schema) ? own(schema, 'description') : undefined;
  const listed = isObject(schema) ? own(schema, 'enum') : undefined;
  return {
    name,
    kind: kindOf(schema, value),
    description: typeof described === 'string' ? visible(described) : '',
    required: requiredOf(parameters).includes(name),
    choices: Array.isArray(listed) ? listed : [],
  };
}

/**
 * The kind of a field. A value that is not of the schema's type is JSON, so that `5` and `"5"` never look alike.
 */
function kindOf(schema: Exact | undefined, value: Exact | undefined): FieldKind {
  if (!isObject(schema)) return 'json';
  const listed = own(schema, 'enum');
  if (Array.isArray(listed) && listed.length > 0) return isChoice(listed, value) ? 'choice' : 'json';
  const types = typesOf(schema);
  const scalar = ['string', 'number', 'integer', 'boolean'].filter((type) => types.includes(type));
  const [only] = scalar;
  // Of two types that a text could be meant as, only JSON tells which it is.
  if (scalar.length !== 1) return 'json';
  if (only === 'string' && typeof value === 'string') return isLong(value) ? 'long' : 'text';
  if (only === 'boolean' && typeof value === 'boolean') return 'boolean';
  if (only === 'number' && typeof value === 'number') return 'number';
  if (only === 'integer' && (typeof value === 'bigint' || Number.isInteger(value))) return 'integer';
  return 'json';
}

function isLong(text: string): boolean {
  return text.length > LINE || /[\n\r]/.test(text);
}

/** The types that a schema allows, those of its alternatives among them. */
function typesOf(schema: ExactObject): Exact[] {
  const type = own(schema, 'type');
  if (type !== undefined) return Array.isArray(type) ? type : [type];
  const ways = own(schema, 'anyOf') ?? own(schema, 'oneOf');
  return Array.isArray(ways) ? ways.flatMap((way) => (isObject(way) ? typesOf(way) : [])) : [];
}

function isChoice(listed: readonly Exact[], value: Exact | undefined): boolean {
  const labels = listed.map(choiceLabel);
  // The list shows names without what cannot be seen, so that two of them could look alike.
  const told = new Set(labels.map(plainName));
  return (
    listed.some((one) => sameValue(one, value)) &&
    told.size === listed.length &&
    labels.every((label) => label.length <= LONGEST_CHOICE && label !== '' && visible(label) === label)
  );
}

/** A value of a choice as it is shown. */
export function choiceLabel(value: Exact): string {
  return typeof value === 'string' ? value : exactText(value);
}

export function sameValue(one: Exact | undefined, other: Exact | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return exactText(one) === exactText(other);
}

/** A value as its field shows it: nothing in it is hidden. */
export function fieldText(kind: FieldKind, value: Exact | undefined): string {
  if ((kind === 'text' || kind === 'long') && typeof value === 'string') return visible(value);
  return value === undefined ? '' : visibleJson(exactText(value, 2));
}

/** The value that a field's text says; `undefined` if it says none. */
export function fieldValue(kind: FieldKind, text: string): Exact | undefined {
  switch (kind) {
    case 'text':
    case 'long':
      return meant(text);
    case 'number':
    case 'integer':
      return numberOf(text.trim(), kind === 'integer');
    case 'boolean':
    case 'choice':
    case 'json':
      return parseExact(text);
  }
}

/** A number that is sent as it is written: none that the page would round. */
function numberOf(text: string, whole: boolean): number | bigint | undefined {
  if (!NUMBER.test(text)) return undefined;
  const value = parseExact(text);
  if (typeof value === 'bigint') return value;
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return whole && !Number.isSafeInteger(value) ? undefined : value;
}

/** The object that a JSON text says; `null` if it is no object. */
export function objectOf(text: string): ExactObject | null {
  const value = parseExact(text);
  return isObject(value) ? value : null;
}

/** The value that an argument begins with when it is added. */
export function firstValue(parameters: Exact, name: string): Exact {
  const schema = own(propertiesOf(parameters), name);
  if (!isObject(schema)) return null;
  const fallback = own(schema, 'default');
  if (fallback !== undefined && fallback !== null) return fallback;
  const listed = own(schema, 'enum');
  if (Array.isArray(listed) && listed[0] !== undefined) return listed[0];
  const [type] = typesOf(schema);
  switch (type) {
    case 'string':
      return '';
    case 'number':
    case 'integer':
      return 0;
    case 'boolean':
      return false;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return null;
  }
}
