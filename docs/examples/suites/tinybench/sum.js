const NUMBERS = 20000

export function sum() {
  let total = 0
  for (let number = 0; number < NUMBERS; number++) total = (total + number * number) % 1009
  return total
}
