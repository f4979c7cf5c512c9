import type { hands as en } from '../en/hands'

export const hands: Record<keyof typeof en, string> = {
  clearFlags: '全部清除',
  clearFlagsHint: '清除所标范围内的问题帧标记；未标范围时清除整个视频的标记',
  setNumberRange: '仅在第 {first}–{last} 帧设置编号',
  unsent: '有 {count} 项编辑在标签页关闭时尚未送达服务器。',
  unsentSend: '立即发送',
  unsentDiscard: '丢弃',
  unsentSent: '已发送 {count} 项编辑。',
}
