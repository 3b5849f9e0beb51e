-- Neovim with `ampc lsp`, for docs/pictures/make: AMPC is the server, REPO the source code, READY a file that is
-- written when hints and the hover of the word AT are drawn.
vim.opt.runtimepath:append(vim.env.REPO .. '/editors/vim')
vim.opt.swapfile = false
vim.opt.termguicolors = true
vim.opt.background = 'light'
vim.opt.number = true
vim.opt.ruler = false
vim.opt.showcmd = false
vim.opt.signcolumn = 'no'
vim.opt.wrap = false
vim.opt.linebreak = true
vim.opt.fillchars = { eob = ' ' }
vim.cmd('filetype plugin on | syntax on')
for _, group in ipairs({ 'Normal', 'NormalFloat', 'FloatBorder' }) do
  vim.api.nvim_set_hl(0, group, { fg = '#14161b', bg = '#fafafa' })
end
vim.api.nvim_set_hl(0, 'LspInlayHint', { fg = '#3a6ea5', bg = '#eaf1f8' })
require('ampc').setup({ command = vim.env.AMPC })
vim.lsp.inlay_hint.enable()

local function hints() return #vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0 end
local function float()
  return vim.iter(vim.api.nvim_list_wins()):any(function(w) return vim.api.nvim_win_get_config(w).relative ~= '' end)
end

vim.api.nvim_create_autocmd('VimEnter', {
  callback = vim.schedule_wrap(function()
    vim.wait(20000, hints, 20)
    vim.fn.search(vim.env.AT)
    vim.lsp.buf.hover({ border = 'rounded', max_width = 96, focusable = false })
    local timer = vim.uv.new_timer()
    timer:start(0, 50, vim.schedule_wrap(function()
      if not float() then return end
      timer:stop()
      vim.cmd('redraw!')
      vim.defer_fn(function() vim.fn.writefile({}, vim.env.READY) end, 300)
    end))
  end),
})
