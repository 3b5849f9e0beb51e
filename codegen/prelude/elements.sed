# functions.h for CUDA, where a thread computes single elements:  sed -f elements.sed functions.h > functions.cuh
#
# Vectors become their elements, the function exp_vf becomes exp_f32, splat_f(c) becomes c, and a line SCALAR(..) goes,
# since the function is that of single numbers.
1,/\*\//c\
/* functions.cuh: made from codegen/prelude/functions.h, which says how exact each function is. */
/^SCALAR/d
s/\bvf\b/float/g
s/\bvi\b/int32_t/g
s/\bvd\b/double/g
s/\bvl\b/int64_t/g
s/_vf\b/_f32/g
s/_vi\b/_i32/g
s/_vd\b/_f64/g
s/_vl\b/_i64/g
s/splat_[fid](\([-+.[:alnum:]_]*\))/\1/g
s/splat_[fid](\([^()]*\))/(\1)/g
