import { Bench } from 'tinybench'
import { sum } from './sum.js'

const bench = new Bench({ name: 'numbers' })

bench.add('sum', () => {
  sum()
})

await bench.run()
