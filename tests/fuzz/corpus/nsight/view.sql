CREATE TABLE StringIds(id,value);INSERT INTO StringIds VALUES(1,'a');
CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 start,2 end,7 streamId,1 demangledName;
