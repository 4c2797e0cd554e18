import type { Plugin } from 'vite';

/**
 * The shell freezes `Object.prototype`, after which assigning to one of these throws unless the object has one of its
 * own.
 */
const FROZEN = new Set(Object.getOwnPropertyNames(Object.prototype));

/** The packages that mermaid needs and that assign to such names, as scripts of before classes do. */
const PACKAGES =
  /[\\/]node_modules[\\/](?:@mermaid-js|cose-base|cytoscape|d3|d3-sankey|dagre-d3-es|dayjs|khroma|layout-base|mermaid|roughjs|stylis)[-\w]*[\\/]/;

/** Defines a property as an assignment does if nothing is frozen. */
const OWN = `
function __own(object, key, value) {
  if (typeof key === 'string' && key in Object.prototype && !Object.prototype.hasOwnProperty.call(object, key))
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
  return value;
}
function __assign(object, ...sources) {
  for (const source of sources) if (source) for (const key of Reflect.ownKeys(source))
    if (Object.prototype.propertyIsEnumerable.call(source, key)) __own(object, key, source[key]);
  return object;
}
`;

interface Node {
  type: string;
  start: number;
  end: number;
  [part: string]: unknown;
}

type Edit = readonly [start: number, end: number, text: string];

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;

/** Lets packages that give their objects a `toString` or a `constructor` by assignment run under frozen prototypes. */
export function frozenPrototypes(): Plugin {
  return {
    name: 'frozen-prototypes',
    apply: 'build',
    transform(code, id) {
      if (!PACKAGES.test(id) || !/\.m?js$/.test(id)) return null;
      const edits: Edit[] = [];
      collect(code, this.parse(code), edits);
      if (edits.length === 0) return null;
      return { code: edited(code, edits) + OWN, map: null };
    },
  };
}

function collect(code: string, node: unknown, edits: Edit[]): void {
  if (Array.isArray(node)) {
    for (const inner of node) collect(code, inner, edits);
    return;
  }
  if (!isNode(node)) return;
  const { left } = node;
  if (node.type === 'AssignmentExpression' && node.operator === '=' && isNode(left) && left.type === 'MemberExpression')
    edits.push(...assignment(code, node, left));
  if (node.type === 'MemberExpression' && code.slice(node.start, node.end) === 'Object.assign')
    edits.push([node.start, node.end, '__assign']);
  for (const part of Object.values(node)) if (typeof part === 'object') collect(code, part, edits);
}

/** `a.toString = b` and `a[key] = b` as calls. */
function assignment(code: string, node: Node, left: Node): Edit[] {
  const { object, property } = left;
  if (!isNode(object) || !isNode(property) || object.type === 'Super') return [];
  const equals = code.indexOf('=', left.end) + 1;
  const [start, end]: Edit[] = [
    [node.start, node.start, '__own('],
    [node.end, node.end, ')'],
  ];
  if (left.computed !== true) {
    const name = property.type === 'Identifier' ? String(property.name) : '';
    return start && end && FROZEN.has(name) ? [start, [object.end, equals, `, '${name}', `], end] : [];
  }
  if (property.type === 'Literal' || !start || !end) return [];
  const bracket = code.indexOf('[', object.end);
  return [start, [bracket, bracket + 1, ', ('], [left.end - 1, equals, '), '], end];
}

function edited(code: string, edits: Edit[]): string {
  let text = '';
  let at = 0;
  // An insertion at the start of a replacement belongs to the replacement that ends there.
  for (const [start, end, replacement] of edits.sort(([a, b], [c, d]) => a - c || b - d)) {
    text += code.slice(at, start) + replacement;
    at = end;
  }
  return text + code.slice(at);
}
