'use strict'
// weir.chart(figure, chart) draws a chart into a <figure> whose <figcaption> says the same in words, and returns
// {update(x, values)}. Texts are only ever set as text. A chart is
//
//   title, answer   the question, and the answer in words
//   x               numbers in order: seconds since 1970 if time, seconds since a start if elapsed, or any
//   series          [{name, values, colour, area, steps, dots, dashed}]; a colour is a name of page.css: admitted, curve-0
//   stacked         each series stands on those before it
//   day             [from, to]: the part of a time that links to the figure show
//   flags           numbers; a step above 0 is marked below the axis, however small it is
//   marks           [{name, x or y, colour}]: lines across the chart
//   logX, zeroY     a logarithmic x; a y that is logarithmic above 1 and has a true zero
//   unit, xName     of what is counted, and what x is
//   height          in pixels
var weir = (() => {
  const numbers = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 2 })
  const number = n => n == null ? '–' : numbers.format(n)
  const two = n => String(n).padStart(2, '0')
  const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

  // element returns a new element with a text and children.
  function element(name, properties, ...children) {
    const e = Object.assign(document.createElement(name), properties)
    e.append(...children)
    return e
  }

  function clock(seconds, step) {
    const d = new Date(seconds * 1000)
    const day = `${d.getUTCDate()} ${months[d.getUTCMonth()]}`
    const time = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` + (step < 60 ? ':' + two(d.getUTCSeconds()) : '')
    return { day, time, midnight: seconds % 86400 === 0, year: d.getUTCFullYear() }
  }

  function elapsed(seconds) {
    for (const [unit, name] of [[86400, 'd'], [3600, 'h'], [60, 'm']]) if (seconds >= unit && seconds % unit === 0) return seconds / unit + name
    return number(seconds) + 's'
  }

  // instant returns a value of x as text.
  function instant(c, x, step) {
    if (c.elapsed) return elapsed(x)
    if (!c.time) return number(x)
    const t = clock(x, step)
    return `${t.day} ${t.time}`
  }

  function axisLabels(c, splits, step) {
    return splits.map(x => {
      if (x == null) return ''
      if (!c.time) return instant(c, x, step)
      const t = clock(x, step)
      return step >= 86400 * 300 ? String(t.year) : t.midnight || step >= 86400 ? t.day : t.time
    })
  }

  // short writes 12k for 12,000.
  function short(n) {
    for (const [unit, name] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) if (Math.abs(n) >= 10 * unit || (Math.abs(n) >= unit && n % (unit / 10) === 0)) return number(n / unit) + name
    return number(n)
  }

  // heights returns what uPlot draws: of a stack the sums, the highest first.
  function heights(c, values) {
    if (!c.stacked) return values
    const sums = []
    values.forEach((v, i) => sums.push(i === 0 ? v : v.map((n, j) => n + sums[i - 1][j])))
    return sums.reverse()
  }

  const order = c => c.stacked ? c.series.slice().reverse() : c.series
  const powers = top => { const all = [0]; for (let n = 1; n <= top; n *= 10) all.push(n); return all }

  const zoomed = (c, low, high) => low > c.x[0] || high < c.x.at(-1)

  // logarithmic returns the range of x with all values and marks in view.
  function logarithmic(c) {
    const all = c.x.concat((c.marks ?? []).map(m => m.x ?? c.x[0])).filter(x => x > 0)
    const low = Math.min(...all, 1e15), high = Math.max(...all, low)
    return low < high ? [low, high > c.x.at(-1) ? high * 1.15 : high] : [low / 2, low * 2]
  }

  // decades returns 1, 2 and 5 of each power of ten.
  function decades(low, high) {
    const all = []
    for (let n = 10 ** Math.floor(Math.log10(low)); n <= high; n *= 10) all.push(n, 2 * n, 5 * n)
    return all.filter(n => n >= low && n <= high)
  }

  // options are uPlot's, for a width in pixels, with everything drawn scale times as large.
  function options(c, width, height, scale, colour) {
    const font = `${12.5 * scale}px system-ui, sans-serif`
    const axis = {
      stroke: () => colour('soft'), font, grid: { stroke: () => colour('line'), width: scale }, ticks: { show: false },
      gap: 6 * scale,
    }
    const counts = {
      ...axis, size: 54 * scale, space: 34 * scale, incrs: [1, 2, 5].concat(...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(p => [1, 2, 5].map(n => n * 10 ** p))),
      values: (u, splits) => splits.map(n => n == null ? '' : short(n)),
    }
    if (c.zeroY) Object.assign(counts, { splits: (u, i, low, high) => powers(high), filter: (u, splits) => splits })
    if (c.fractionY) delete counts.incrs
    let along = c.time || c.elapsed ? {} : { incrs: counts.incrs }
    if (c.logX) along = { splits: (u, i, low, high) => decades(low, high), filter: (u, splits) => splits }
    const widest = Math.max(...c.series.map(s => s.values.length), 0)
    return {
      width, height, legend: { show: false }, padding: [(c.marks?.length ? 8 : 10) * scale, 28 * scale, 0, 0],
      cursor: { y: false, drag: { x: scale === 1 && widest > 2, y: false }, points: { size: 7 } },
      tzDate: t => uPlot.tzDate(new Date(t * 1000), 'Etc/UTC'),
      scales: {
        x: c.logX ? { time: false, distr: 3, range: (u, low, high) => zoomed(c, low, high) ? [low, high] : logarithmic(c) } : { time: !!c.time },
        y: {
          ...(c.zeroY ? { distr: 4, asinh: 1 } : {}),
          range: (u, low, high) => [0, Math.max(c.fractionY ? 1e-9 : 1, high || 0, ...(c.marks ?? []).map(m => m.y ?? 0)) * (c.zeroY ? 1.6 : 1.08)],
        },
      },
      axes: [
        { ...axis, ...along, size: (c.flags ? 38 : 30) * scale, gap: (c.flags ? 14 : 6) * scale, space: 78 * scale, values: (u, splits, i, space, step) => axisLabels(c, splits, step) },
        counts,
      ],
      series: [{}, ...order(c).map(s => ({
        label: s.name, width: (s.area ? 0 : 2) * scale, stroke: () => colour(s.colour), fill: s.area ? () => colour(s.colour) : undefined,
        dash: s.dashed ? [7 * scale, 5 * scale] : undefined, points: { show: !!s.dots, size: 9 * scale, fill: () => colour(s.colour) },
        paths: s.dots ? () => null : s.steps ? uPlot.paths.stepped({ align: 1 }) : undefined, spanGaps: true,
      }))],
      hooks: { draw: [u => flag(u, c, scale, colour), u => mark(u, c, scale, colour)] },
    }
  }

  // flag marks steps below the axis.
  function flag(u, c, scale, colour) {
    if (!c.flags) return
    const { ctx, bbox } = u, top = bbox.top + bbox.height + 3 * scale * uPlot.pxRatio
    ctx.fillStyle = colour('refused')
    c.flags.forEach((n, i) => {
      if (!(n > 0) || c.x[i] < u.scales.x.min || c.x[i] > u.scales.x.max) return
      const from = u.valToPos(c.x[i], 'x', true)
      const to = u.valToPos(Math.min(c.x[i + 1] ?? c.x[i], u.scales.x.max), 'x', true)
      ctx.fillRect(from, top, Math.max(to - from, 2 * scale * uPlot.pxRatio), 6 * scale * uPlot.pxRatio)
    })
  }

  // mark draws the lines across the chart. Each has its label in a row of its own.
  function mark(u, c, scale, colour) {
    const { ctx, bbox } = u, ratio = scale * uPlot.pxRatio
    ctx.save()
    ctx.font = `600 ${12.5 * ratio}px system-ui, sans-serif`
    ctx.lineWidth = 1.5 * ratio
    ctx.setLineDash([5 * ratio, 4 * ratio])
    let row = 0
    for (const m of c.marks ?? []) {
      const across = m.y != null, at = u.valToPos(across ? m.y : m.x, across ? 'y' : 'x', true)
      if (!across && (m.x < u.scales.x.min || m.x > u.scales.x.max)) continue
      ctx.strokeStyle = ctx.fillStyle = colour(m.colour ?? 'mark')
      ctx.beginPath()
      if (across) ctx.moveTo(bbox.left, at), ctx.lineTo(bbox.left + bbox.width, at)
      else ctx.moveTo(at, bbox.top), ctx.lineTo(at, bbox.top + bbox.height)
      ctx.stroke()
      const right = across || at < bbox.left + bbox.width * 0.6
      ctx.textAlign = right ? 'left' : 'right'
      const from = across ? bbox.left + 6 * ratio : at + (right ? 5 : -5) * ratio
      const y = across ? at - 5 * ratio : bbox.top + (13 + 17 * row++) * ratio
      const fitting = fit(ctx, m.name, (right ? bbox.left + bbox.width - from : from - bbox.left))
      const wide = ctx.measureText(fitting).width
      const ink = ctx.fillStyle
      ctx.globalAlpha = 0.85
      ctx.fillStyle = colour('paper')
      ctx.fillRect((right ? from : from - wide) - 2 * ratio, y - 12 * ratio, wide + 4 * ratio, 16 * ratio)
      ctx.globalAlpha = 1
      ctx.fillStyle = ink
      ctx.fillText(fitting, from, y)
    }
    ctx.restore()
  }

  function fit(ctx, text, room) {
    if (ctx.measureText(text).width <= room) return text
    const letters = Array.from(text)
    while (letters.length > 1 && ctx.measureText(letters.join('') + '…').width > room) letters.pop()
    return letters.join('') + '…'
  }

  // palette returns a function from the name of a colour to its value, as the page has it now or as paper has it.
  function palette(paper) {
    const root = document.documentElement
    if (paper) root.classList.add('print')
    const style = getComputedStyle(root), light = {}
    for (const name of ['paper', 'line', 'ink', 'soft', 'admitted', 'refused', 'mark', ...Array.from({ length: 10 }, (_, i) => `curve-${i}`)]) light[name] = style.getPropertyValue('--' + name).trim()
    if (paper) root.classList.remove('print')
    return name => paper ? light[name] : getComputedStyle(root).getPropertyValue('--' + name).trim()
  }

  const all = new Set()

  function chart(figure, c) {
    const height = c.height ?? 240
    const host = element('div', { className: 'plot', tabIndex: 0 })
    host.setAttribute('role', 'group')
    host.setAttribute('aria-roledescription', 'chart')
    host.setAttribute('aria-label', `${c.title} ${c.answer ?? ''} Arrow keys read the values.`)
    const readout = element('p', { className: 'readout' })
    readout.setAttribute('aria-live', 'polite')
    const save = element('button', { type: 'button', textContent: 'Save as PNG' })
    save.setAttribute('aria-label', `Save as PNG: ${c.title}`)
    figure.append(host, element('div', { className: 'under' }, legend(c), save), readout, figures(c))

    const data = () => [c.x, ...heights(c, c.series.map(s => s.values))]
    const opts = options(c, Math.max(host.clientWidth, 200), height, 1, palette(false))
    opts.hooks.setCursor = [u => { readout.textContent = u.cursor.idx == null ? '' : words(c, u.cursor.idx) }]
    opts.hooks.setScale = [(u, axis) => { if (axis === 'x') host.dataset.shown = `${u.scales.x.min} ${u.scales.x.max}` }]
    const u = new uPlot(opts, data(), host)
    new ResizeObserver(() => { if (host.clientWidth > 0 && host.clientWidth !== u.width) u.setSize({ width: host.clientWidth, height }) }).observe(host)
    host.addEventListener('keydown', e => keyboard(u, c, e))
    host.addEventListener('blur', () => u.setCursor({ left: -10, top: -10 }))

    // drawn draws the chart again, larger and in the colours of paper, for print and PNG.
    const drawn = (width, scale, use) => {
      const copy = new uPlot(options(c, width * scale, height * scale, scale, palette(true)), data(), document.createElement('div'))
      queueMicrotask(() => use(copy.ctx.canvas))
    }
    save.addEventListener('click', () => drawn(900, 2, canvas => download(c, canvas)))
    const self = {
      // day shows the day of the chart alone, if it has one.
      day() {
        if (!c.day) return
        const last = c.x.at(-1), step = c.x.length > 1 ? c.x[1] - c.x[0] : 60
        u.setScale('x', { min: Math.max(c.day[0], c.x[0]), max: Math.min(Math.max(c.day[1], c.day[0] + step), last) })
        readout.textContent = `${clock(c.day[0], 86400).day}. Escape, or a double click, shows all.`
        host.focus({ preventScroll: true })
      },
      redraw: () => u.redraw(false),
      print: () => drawn(figure.closest('.grid') ? 400 : 760, 2, canvas => { self.unprint(); canvas.className = 'on-paper'; host.append(canvas) }),
      unprint: () => host.querySelectorAll('.on-paper').forEach(e => e.remove()),
      update(x, values) {
        c.x = x
        c.series.forEach((s, i) => { s.values = values[i] })
        u.setData(data())
      },
    }
    all.add(self)
    return self
  }

  // words tells the values of a step.
  function words(c, i) {
    const step = c.x.length > 1 ? c.x[1] - c.x[0] : 60
    const name = (c.xName ? c.xName + ' ' : '') + instant(c, c.x[i], step)
    return name + ': ' + c.series.filter(s => s.values[i] != null).map(s => `${number(s.values[i])} ${s.name}`).join(', ')
  }

  function keyboard(u, c, e) {
    const last = c.x.length - 1, at = u.cursor.idx
    const next = { ArrowLeft: at == null ? last : at - 1, ArrowRight: at == null ? 0 : at + 1, Home: 0, End: last }[e.key]
    if (e.key === 'Escape') u.setScale('x', { min: c.x[0], max: c.x[last] })
    if (next == null) return
    e.preventDefault()
    const i = Math.min(Math.max(next, 0), last)
    u.setCursor({ left: u.valToPos(c.x[i], 'x'), top: 0 })
  }

  function legend(c) {
    const list = element('ul', { className: 'legend' })
    for (const s of c.series) {
      const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
      const sign = document.createElementNS('http://www.w3.org/2000/svg', s.dots ? 'circle' : 'rect')
      const shape = s.dots ? { cx: 5, cy: 5, r: 4 } : s.area ? { width: 10, height: 10, rx: 2 } : { width: 10, height: 3, y: 4 }
      for (const [k, v] of Object.entries(shape)) sign.setAttribute(k, v)
      svg.setAttribute('viewBox', '0 0 10 10')
      svg.setAttribute('aria-hidden', 'true')
      sign.setAttribute('fill', `var(--${s.colour})`)
      svg.append(sign)
      list.append(element('li', {}, svg, s.name))
    }
    return list
  }

  // figures is a table of the values, made when it is opened.
  function figures(c) {
    const details = element('details', {}, element('summary', { textContent: 'The figures' }))
    details.addEventListener('toggle', () => {
      if (!details.open) { details.lastElementChild.remove(); return }
      const head = element('tr', {}, element('th', { textContent: c.xName ?? (c.time ? 'from (UTC)' : 'from') }), ...c.series.map(s => element('th', { className: 'n', textContent: s.name })))
      const step = c.x.length > 1 ? c.x[1] - c.x[0] : 60
      const rows = c.x.map((x, i) => element('tr', {}, element('td', { textContent: instant(c, x, step) }), ...c.series.map(s => element('td', { className: 'n', textContent: number(s.values[i]) }))))
      details.append(element('div', { className: 'rows' }, element('table', {}, element('thead', {}, head), element('tbody', {}, ...rows))))
    })
    return details
  }

  // download saves a drawn chart below its question and answer.
  function download(c, drawn) {
    const colour = palette(true), margin = 48, width = drawn.width + 2 * margin
    const canvas = element('canvas', { width, height: drawn.height + 330 }), ctx = canvas.getContext('2d')
    ctx.fillStyle = colour('paper')
    ctx.fillRect(0, 0, canvas.width, canvas.height)
    let y = margin + 36
    const write = (text, font, name, line) => {
      ctx.font = font
      ctx.fillStyle = colour(name)
      let row = ''
      for (const word of text.split(' ')) {
        if (row && ctx.measureText(row + ' ' + word).width > drawn.width) { ctx.fillText(row, margin, y); y += line; row = word } else row = row ? row + ' ' + word : word
      }
      ctx.fillText(fit(ctx, row, drawn.width), margin, y)
      y += line
    }
    write(c.title, '650 38px system-ui, sans-serif', 'ink', 48)
    write(c.answer ?? '', '27px system-ui, sans-serif', 'soft', 38)
    ctx.drawImage(drawn, margin, y)
    y += drawn.height + 36
    let x = margin
    ctx.font = '25px system-ui, sans-serif'
    for (const s of c.series) {
      ctx.fillStyle = colour(s.colour)
      ctx.fillRect(x, y - 19, 20, 20)
      ctx.fillStyle = colour('ink')
      ctx.fillText(s.name, x + 30, y)
      x += 70 + ctx.measureText(s.name).width
    }
    canvas.toBlob(blob => {
      const link = element('a', { href: URL.createObjectURL(blob), download: c.title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60) + '.png' })
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60000)
    })
  }

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => all.forEach(c => c.redraw()))
  addEventListener('beforeprint', () => all.forEach(c => c.print()))
  addEventListener('afterprint', () => all.forEach(c => c.unprint()))

  return { chart, number, element }
})()
