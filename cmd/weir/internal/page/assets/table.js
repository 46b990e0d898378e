'use strict'
// weir.table(table) lets a reader sort a table by the heads of its columns, and filter its rows. Columns of class n hold
// numbers. A table with data-first shows only so many rows until a button shows all. The rows of <tfoot> stay.
weir.table = table => {
  const body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells)
  const first = Number(table.dataset.first || Infinity)
  const what = table.dataset.what || 'rows'
  let whole = false
  const filter = weir.element('input', { type: 'search', placeholder: `Filter ${what}` })
  filter.setAttribute('aria-label', `Filter ${what}`)
  const more = weir.element('button', { type: 'button' })
  const count = weir.element('small', {})
  count.setAttribute('role', 'status')

  function show() {
    const words = filter.value.toLowerCase().trim()
    let shown = 0, matching = 0
    for (const row of rows) {
      const matches = row.textContent.toLowerCase().includes(words)
      if (matches) matching++
      row.hidden = !matches || (!whole && shown >= first)
      if (!row.hidden) shown++
    }
    count.textContent = shown < rows.length || words ? `${weir.number(shown)} of ${weir.number(rows.length)} ${what}` : ''
    more.hidden = rows.length <= first || (!whole && matching <= first)
    more.textContent = whole ? `Show ${first}` : `Show all ${weir.number(matching)}`
  }

  const value = (row, i) => {
    const text = row.cells[i]?.textContent ?? ''
    return heads[i].classList.contains('n') ? parseFloat(text.replace(/[,%×<>]/g, '')) || 0 : text
  }

  const isNumeric = i => heads[i].classList.contains('n')

  function sort(i, falls = heads[i].ariaSort === 'descending' ? false : heads[i].ariaSort === 'ascending' ? true : isNumeric(i)) {
    const numeric = isNumeric(i)
    heads.forEach(h => h.removeAttribute('aria-sort'))
    heads[i].setAttribute('aria-sort', falls ? 'descending' : 'ascending')
    rows.sort((a, b) => {
      const x = value(a, i), y = value(b, i)
      return (numeric ? x - y : x < y ? -1 : x > y ? 1 : 0) * (falls ? -1 : 1)
    })
    body.append(...rows)
    show()
  }

  // On a phone, where rows are lists and no head is shown, a choice sorts.
  const order = weir.element('select', {}, weir.element('option', { value: '', textContent: 'Sort by' }))
  order.setAttribute('aria-label', `Sort ${what} by`)
  heads.forEach((head, i) => {
    for (const falls of [isNumeric(i), !isNumeric(i)]) order.append(weir.element('option', { value: `${i} ${falls}`, textContent: `${head.textContent} ${falls ? '↓' : '↑'}` }))
    const button = weir.element('button', { type: 'button', textContent: head.textContent })
    head.replaceChildren(button)
    button.addEventListener('click', () => sort(i))
  })
  order.addEventListener('change', () => {
    const [i, falls] = order.value.split(' ')
    if (falls) sort(Number(i), falls === 'true')
  })
  filter.addEventListener('input', show)
  more.addEventListener('click', () => { whole = !whole; show() })
  const tools = [weir.element('span', { className: 'order' }, order)]
  if (rows.length > 5) tools.unshift(filter, count)
  if (rows.length > 1) (table.closest('.rows') ?? table).before(weir.element('div', { className: 'tools' }, ...tools))
  ;(table.closest('.rows') ?? table).after(weir.element('div', { className: 'tools' }, more))
  show()
}
