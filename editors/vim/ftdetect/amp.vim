autocmd BufRead,BufNewFile *.amp setfiletype amp
