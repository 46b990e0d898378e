// Elements of the page. Keys and names come from strangers: text becomes text nodes here, and nothing ever parses it as HTML.

/** by returns the element with an id. */
export const by = id => document.getElementById(id)

/** el makes an element: properties that begin with aria- or data- become attributes, and the others are set. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (/^(aria|data)-|^(scope|role|list)$/.test(name)) node.setAttribute(name, value)
    else node[name] = value
  }
  node.append(...children)
  return node
}

/** put sets the text of an element if it differs, so that selections and screen readers are left in peace. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text
}

/**
 * Rows keeps the rows of a table in step with a list. A row stays the same element while its item stays in the list, so a
 * focused button keeps the focus. The order rests while someone points at the table or has the focus in it.
 */
export class Rows {
  #body
  #rows = new Map()
  #make
  #empty

  /** make(item) returns {row, show(item)}. empty is what an empty table says. */
  constructor(table, empty, make) {
    this.#body = table.tBodies[0]
    this.#make = make
    const columns = Math.max(1, table.tHead.rows[0].cells.length)
    this.#empty = el('tr', {}, el('td', { colSpan: columns, className: 'soft', textContent: empty }))
  }

  show(items, idOf) {
    const kept = new Map()
    for (const item of items) {
      const id = idOf(item)
      const known = this.#rows.get(id) ?? this.#make(item)
      known.show(item)
      kept.set(id, known)
    }
    for (const [id, known] of this.#rows) if (!kept.has(id)) known.row.remove()
    this.#rows = kept
    if (!kept.size) this.#body.replaceChildren(this.#empty)
    else this.#empty.remove()
    this.#order([...kept.values()].map(known => known.row))
  }

  #order(rows) {
    const resting = this.#body.matches(':hover') || this.#body.contains(document.activeElement)
    rows.forEach((row, i) => {
      if (this.#body.rows[i] === row) return
      if (!row.isConnected) this.#body.insertBefore(row, resting ? null : this.#body.rows[i] ?? null)
      else if (!resting) this.#body.insertBefore(row, this.#body.rows[i] ?? null)
    })
  }
}

/** cells makes a row of as many cells, those of numbers aligned to the right. */
export function cells(count, ...numbers) {
  const all = Array.from({ length: count }, (_, i) => el('td', { className: numbers.includes(i) ? 'n' : '' }))
  return { row: el('tr', {}, ...all), cells: all }
}
