// Writes a page of the site from the OpenAPI file of the daemon: its paths, and a table for each schema.
import { readFileSync, writeFileSync } from 'node:fs'

const api = JSON.parse(readFileSync(new URL('../cmd/weir/internal/api/openapi.json', import.meta.url), 'utf8'))
const nameOf = ref => ref.split('/').at(-1)
const deref = part => part.$ref ? part.$ref.split('/').slice(1).reduce((at, key) => at[key], api) : part
const cell = text => String(text ?? '').replaceAll('|', '\\|').replaceAll('<', '&lt;')
const to = name => `[${name}](#${name.toLowerCase()})`
const table = (head, rows) => [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`).join('\n') + '\n'

// typeOf says in a few words which values a schema allows.
function typeOf(schema) {
  if (schema.$ref) return to(nameOf(schema.$ref))
  if (schema.oneOf) return schema.oneOf.map(typeOf).join(' or ')
  if (schema.enum) return schema.enum.map(v => `\`${v}\``).join(', ')
  if (schema.const) return `\`${schema.const}\``
  const bounds = [['minimum', 'from'], ['exclusiveMinimum', 'above'], ['maximum', 'to'], ['maxLength', 'up to'], ['maxItems', 'up to'], ['default', 'default']]
    .filter(([key]) => schema[key] !== undefined).map(([key, word]) => `${word} ${schema[key]}`)
  const type = schema.type === 'array' ? `array of ${typeOf(schema.items)}` : [schema.type].flat().join(' or ')
  return [type, ...bounds].join(', ')
}

const bodyOf = part => Object.values(deref(part).content ?? {}).map(c => typeOf(c.schema)).join(' or ')
let page = `# ${api.info.title}'s HTTP API, version ${api.info.version}\n\n${api.info.description} [api.md](api.md) says what a schema cannot say.\n`
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, call] of Object.entries(methods)) {
    page += `\n## ${method.toUpperCase()} ${path}\n\n${call.summary}\n\n`
    const asks = (call.parameters ?? []).map(deref).map(p => [`\`${p.name}\`, ${p.in}`, typeOf(p.schema), cell(p.description)])
    if (call.requestBody) asks.push(['body', bodyOf(call.requestBody), cell(deref(call.requestBody).description)])
    if (asks.length) page += table(['request', 'type', 'meaning'], asks) + '\n'
    page += table(['status', 'body', 'meaning'], Object.entries(call.responses).map(([status, r]) => [status, bodyOf(r), cell(deref(r).description)]))
  }
}
for (const [name, schema] of Object.entries(api.components.schemas)) {
  page += `\n## ${name}\n\n${schema.description ?? ''}\n\n`
  const fields = Object.entries(schema.properties ?? {})
  if (fields.length) page += table(['field', 'type', 'meaning'], fields.map(([field, s]) => [`\`${field}\`${schema.required?.includes(field) ? ', always' : ''}`, typeOf(s), cell(s.description)]))
  else page += typeOf(schema) + '\n'
}
writeFileSync(new URL('.pages/reference/openapi.md', import.meta.url), page)
