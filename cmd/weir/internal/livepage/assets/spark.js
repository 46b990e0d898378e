// Small pictures without a scale: admitted requests below, refused ones above them.

const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
  node.append(...children)
  return node
}

const width = 180, height = 28

/** area draws between two lists of values. */
function area(low, high, most) {
  const at = (v, i) => `${(i * width / Math.max(1, high.length - 1)).toFixed(1)},${(height - v / most * height).toFixed(1)}`
  return `M${high.map(at).join('L')}L${low.map(at).reverse().join('L')}Z`
}

/** spark draws a history, as high as its element. */
export function spark({ admitted, refused }) {
  const sum = admitted.map((v, i) => v + refused[i]), most = Math.max(1e-9, ...sum)
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('path', { class: 'admitted', d: area(admitted.map(() => 0), admitted, most) }),
    svg('path', { class: 'refused', d: area(admitted, sum, most) }))
}
